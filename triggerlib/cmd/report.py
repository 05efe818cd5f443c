# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The Guru Meditation Report: what an agent is doing, on SIGUSR2."""

from oslo_reports.generators import conf as conf_generator
from oslo_reports import guru_meditation_report
from oslo_reports.models import with_default_views
from oslo_reports import opts as report_opts
import pbr.version

_VERSION = pbr.version.VersionInfo('triggerlib')


class _Package:
    """What a report says of the package."""

    @staticmethod
    def vendor_string():
        return 'triggerlib'

    @staticmethod
    def product_string():
        return 'triggerlib-agent'

    @staticmethod
    def version_string_with_package():
        return _VERSION.version_string()


def register_opts(conf) -> None:
    """Register the options of ``[oslo_reports]``.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    """
    report_opts.set_defaults(conf)


def set_up(conf, parts=None) -> None:
    """Have this process write a report when it gets SIGUSR2.

    It goes to standard error, or to ``[oslo_reports] log_dir``.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param parts: the :class:`triggerlib.cmd.parts.Parts` of this process
    """
    reporter = guru_meditation_report.TextGuruMeditation
    if parts is not None:
        reporter.register_section('Agent', lambda: _agent(parts))
    # The report's own section of that kind shows the global configuration.
    reporter.register_section(
        'Options', conf_generator.ConfigReportGenerator(cnf=conf))
    reporter.setup_autorun(
        _Package, service_name='triggerlib-agent', conf=conf)


def _agent(parts):
    loaded = parts.files.catalog.current
    return with_default_views.ModelWithDefaultViews({
        'parts': ', '.join(parts.names),
        'trigger definitions': {
            one.name: one.fingerprint for one in loaded.definitions},
        'sinks': ', '.join(sorted(loaded.pipelines.sinks)),
        'sources': ', '.join(one.name for one in loaded.pipelines.sources),
    })

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

"""How Sphinx builds the documentation."""

import os
import sys

import pbr.version

sys.path.insert(0, os.path.abspath('ext'))

project = 'triggerlib'
author = 'triggerlib developers'
copyright = 'triggerlib developers'
_version = pbr.version.VersionInfo('triggerlib')
version = _version.version_string()
release = _version.release_string()

extensions = [
    'sphinx.ext.autodoc',
    'oslo_config.sphinxext',
    'stevedore.sphinxext',
    'cliff.sphinxext',
    'states',
]
html_theme = 'alabaster'
html_theme_options = {
    'description': 'Triggers over OpenStack notifications',
    'fixed_sidebar': True,
}
exclude_patterns = []
autodoc_member_order = 'bysource'
autoprogram_cliff_application = 'triggerlib'

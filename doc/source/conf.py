"""How Sphinx builds the documentation."""

import os
import sys

import pbr.version

sys.path.insert(0, os.path.abspath('ext'))

project = 'triggerlib'
author = 'triggerlib developers'
copyright = 'triggerlib developers'
release = pbr.version.VersionInfo('triggerlib').version_string()
version = release

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

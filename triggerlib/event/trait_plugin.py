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

"""The base class of trait plugins (``triggerlib.trait_plugin``)."""


class TraitPlugin:
    """Makes the value of a trait from the fields that its paths lead to.

    A plugin is built with the ``parameters`` of its trait definition as
    keyword arguments. Parameters that are wrong raise TypeError or
    ValueError.

    A plugin written for Ceilometer, which has ``trait_values`` and gives a
    list, is taken as it is.
    """

    def trait_value(self, match_list):
        """Return the value of the trait, or None for no trait.

        :param match_list: ``(path, value)`` pairs of the fields that are
            there and not null; empty when there is none
        :returns: what the trait's type can be made from
        """
        raise NotImplementedError

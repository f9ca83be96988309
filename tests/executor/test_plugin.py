"""What Snakemake sees of the plugin before it uses it: every run of Snakemake imports it, nested ones too."""

import subprocess
import sys
from dataclasses import fields

import snakemake_executor_plugin_submitit as plugin
from snakemake_executor_plugin_submitit.resources import TABLE

LOAD = """
import sys
import snakemake_interface_executor_plugins.executors.remote, snakemake_interface_executor_plugins.utils
before = set(sys.modules)
import snakemake_executor_plugin_submitit
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def test_loading_it_imports_nothing_that_takes_time() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"submitit", "torch", "numpy", "pandas", "snakemake", "xlgrid", "cloudpickle"}
    assert heavy.isdisjoint(loaded), loaded


def test_every_setting_has_a_sentence_of_help_and_a_default() -> None:
    wrong = [field.name for field in fields(plugin.ExecutorSettings) if not field.metadata["help"].endswith(".")]
    assert wrong == []


def test_settings_that_a_resource_overrides_say_so() -> None:
    settings = {field.name: field.metadata["help"] for field in fields(plugin.ExecutorSettings)}
    named = [name for name, (where, _) in TABLE.items() if where in settings and name in settings[where]]
    assert {TABLE[name][0] for name in named} == {"partition", "account", "qos", "constraint", "gres"}

#!/usr/bin/env bash
# Builds a wheel, installs it in an empty virtual environment, and has it do
# what needs the files inside it: migrations, sample data and the demo.
set -eu
work=$1
rm -rf "$work/dist" "$work/empty" "$work/demo"
python -m build --wheel --outdir "$work/dist" .
python3 -m venv "$work/empty"
"$work/empty/bin/pip" install --quiet "$work"/dist/*.whl
cd "$work"
empty/bin/triggerlib --version
printf '[triggerlib]\nconnection = sqlite:///%s/wheel.sqlite\n' "$work" \
    > wheel.conf
rm -f wheel.sqlite
empty/bin/triggerlib --config-file wheel.conf db upgrade
empty/bin/triggerlib --config-file wheel.conf db check
empty/bin/triggerlib demo --servers 5 --days 1 --output "$work/demo"
test -f empty/etc/triggerlib/trigger_definitions.yaml
test -f empty/etc/triggerlib/event_pipeline.yaml
test -f empty/etc/triggerlib/event_definitions.yaml
test -f empty/etc/triggerlib/triggerlib.conf.sample

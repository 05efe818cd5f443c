#!/usr/bin/env bash
# Builds the source archive and the wheel, once with git and once from a tree
# that has none, and has the wheel, in an empty virtual environment, do what
# needs the files inside it: migrations, sample files and the demo.
set -eu
work=$1
rm -rf "$work"
mkdir -p "$work/bare"

# A wheel that is made by way of the source archive shows that both are whole.
python -m build --outdir "$work/dist" .
tar -xzf "$work"/dist/*.tar.gz -C "$work/bare" --strip-components 1
rm -rf "$work"/bare/*.egg-info "$work/bare/PKG-INFO"
# Out of reach of the git checkout that the folder may be in.
(cd "$work/bare"
 GIT_CEILING_DIRECTORIES=$work PBR_VERSION=0.1.0 python -m build \
     --wheel --outdir "$work/dist-bare" .)

contents() {
    python -c 'import sys, zipfile
for name in sorted(zipfile.ZipFile(sys.argv[1]).namelist()):
    if ".dist-info/" not in name:
        print(name.partition(".data/")[2] or name)' "$1"
}
contents "$work"/dist/*.whl > "$work/contents"
contents "$work"/dist-bare/*.whl > "$work/contents-bare"
diff -u "$work/contents" "$work/contents-bare"
# The wheel has each file of the package and each sample.
git ls-files triggerlib etc | LC_ALL=C sort > "$work/wanted"
LC_ALL=C sort "$work/contents" | sed 's,^data/,,' | diff -u "$work/wanted" -

python -m venv "$work/empty"
"$work/empty/bin/pip" install --quiet "$work"/dist/*.whl
cd "$work"
empty/bin/pip check
empty/bin/triggerlib --version
# Every plugin and command that is declared is there.
empty/bin/python -c 'from importlib import metadata
for entry_point in metadata.distribution("triggerlib").entry_points:
    entry_point.load()'
printf '[triggerlib]\nconnection = sqlite:///%s/wheel.sqlite\n' "$work" \
    > wheel.conf
empty/bin/triggerlib --config-file wheel.conf db upgrade
empty/bin/triggerlib --config-file wheel.conf db check
empty/bin/triggerlib demo --servers 5 --days 1 --output "$work/demo"
for sample in trigger_definitions.yaml event_pipeline.yaml \
        event_definitions.yaml triggerlib.conf.sample; do
    test -f "empty/etc/triggerlib/$sample"
done

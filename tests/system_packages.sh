#!/bin/sh
# Installs the Debian packages some tests use, where that is possible; else says which tests will be skipped.
missing=""
command -v tesseract >/dev/null 2>&1 || missing="$missing tesseract-ocr"
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
command -v java >/dev/null 2>&1 || missing="$missing default-jre-headless"
command -v pdflatex >/dev/null 2>&1 || missing="$missing texlive-latex-recommended"
[ -e /usr/share/javascript/katex/katex.min.js ] || missing="$missing libjs-katex"
[ -e /usr/share/wordnet/index.noun ] || missing="$missing wordnet-base"
if [ "${1:-}" = slurm ]; then
    missing=""
    command -v slurmctld >/dev/null 2>&1 || missing="$missing slurmctld slurmd slurm-client munge"
    command -v bindfs >/dev/null 2>&1 || missing="$missing bindfs"
fi
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq >/dev/null 2>&1
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null 2>&1 && exit 0
fi
echo "not installed:$missing (tests that need them are skipped)"

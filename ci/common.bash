# Sourced by ci/lint, ci/format and ci/checks/*: where the tree is, which files it has, which ports.
# shellcheck shell=bash
set -euo pipefail

project="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# The checks look at root: EXECMEM_LINT_ROOT is how their own tests show them another tree, with something wrong in it.
root="${EXECMEM_LINT_ROOT:-$project}"
readonly project root
readonly python="${PYTHON:-/usr/bin/python3}"
export JOBS="${JOBS:-2}"
cd "$root"

# The tree's own files, tracked or new and not ignored, that match the git pathspecs given (none: all).
# shellcheck disable=SC2120 # the arguments may be left out
files() {
	local path
	git ls-files --cached --others --exclude-standard --deduplicate -- "$@" | while read -r path; do
		[[ ! -f $path ]] || echo "$path"
	done
}

# Files whose first line names an interpreter that matches $1, an extended regular expression.
scripts() {
	# shellcheck disable=SC2119,SC2016 # all files; an awk program
	files | xargs -r -d '\n' awk -v interpreter="^#!.*($1)( |\$)" 'FNR == 1 { if ($0 ~ interpreter) print FILENAME; nextfile }'
}

# One line a port, found by its manifest: name, triple, bytes in a pointer, compile flags; separated by tabs.
ports() {
	"$python" - <<'TEXT'
import pathlib
import tomllib

for manifest in sorted(pathlib.Path("arch").glob("*/port.toml")):
    target = tomllib.loads(manifest.read_text(encoding="utf-8"))["target"]
    flags = " ".join(target.get("compile_flags", []))
    print(manifest.parent.name, target["triple"], target["pointer_bytes"], flags, sep="\t")
TEXT
}

# The ports on which shared files are looked at: the first of each pointer size.
typical_ports() {
	ports | awk -F '\t' '!seen[$3]++'
}

# The suffix of the LLVM that the project uses ("-19"), as toolchains/setup chooses it.
llvm_suffix() {
	"$project/toolchains/setup" --meson | sed -n "s/^llvm = '\(.*\)'/\1/p"
}

# Flags with which a port's C compiles, given its name, triple and own flags.
c_flags() {
	local include
	local -a includes=()
	for include in arch "arch/$1" asm conformance ref/include; do
		[[ ! -d $include ]] || includes+=(-I "$include")
	done
	# shellcheck disable=SC2086 # several flags in one string
	printf '%s\n' "--target=$2" -std=c11 -O2 -ffreestanding -nostdlibinc -fno-stack-protector -fno-pic \
		-Wall -Wextra -Werror "${includes[@]}" $3
}

#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# arch_codegen.sh - the hit paths in the built library: how long they are, that
# they neither call nor lock, what they store; and where each section ends.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
[ -n "${EDDY_SO:-}" ] || skip_all 'no EDDY_SO'
needs objdump binutils
needs readelf binutils
objdump=${OBJDUMP:-objdump}

readelf -hW "$EDDY_SO" >"$tap_work/header"
case $(sed -n 's/^ *Machine: *//p' "$tap_work/header") in
*X86-64*) machine=x86 ;;
*AArch64*) machine=arm ;;
*) skip_all 'no assembly for this machine' ;;
esac
readelf -SW "$EDDY_SO" | sed 's/\[ *\([0-9]*\)\]/\1/' >"$tap_work/sections"
grep -q ' __rseq_cs ' "$tap_work/sections" ||
	skip_all 'built without restartable sections'
readelf -W --dyn-syms "$EDDY_SO" >"$tap_work/symbols"
readelf -rW "$EDDY_SO" >"$tap_work/relocations"

# "ADDRESS MNEMONIC OPERANDS" a line, without comments and names of targets.
if ! "$objdump" -d --no-show-raw-insn "$EDDY_SO" >"$tap_work/raw"; then
	skip_all "$objdump does not know this machine"
fi
comment='//'
[ "$machine" = arm ] || comment='#'
sed -n -e 's/<.*//' -e "s|$comment.*||" \
	-e 's/^ *\([0-9a-f][0-9a-f]*\):[[:blank:]]*/\1 /p' \
	"$tap_work/raw" >"$tap_work/code"

# What an instruction does; MACHINE is x86 or arm.
cat >"$tap_work/what.awk" <<'EOF'
function locks(line)
{
	if (MACHINE == "x86")
		return line ~ / lock / || line ~ / xchg .*\(/ ||
		    line ~ / [mls]fence/
	return line ~ / (ld|st)[al]*x(r|p)/ || line ~ / (cas|swp)/ ||
	    line ~ / (ld|st)(add|clr|eor|set|smax|smin|umax|umin)/ ||
	    line ~ / (dmb|dsb|isb)/ || line ~ / stlu?r/
}
function calls(op)
{
	return MACHINE == "x86" ? op ~ /^call/ : op ~ /^bl/
}
function stores(line, op)
{
	if (MACHINE == "arm")
		return op ~ /^st/
	if (op ~ /^(push|call|stos|movs[bwlq]$)/)
		return 1
	if (op ~ /^(cmp|test|lea|nop|j|bt[lq]?$|prefetch)/)
		return 0
	sub(/[ \t]+$/, "", line)
	return line ~ /\)$/ || line ~ /%[c-g]s:[^,]*$/
}
function returns(op)
{
	return op ~ /^ret/
}
# To where an unconditional jump goes, or "".
function jumps(op, operand)
{
	if (MACHINE == "x86" ? op ~ /^jmp/ : op == "b" || op == "br")
		return operand
	return ""
}
function branches(op)
{
	if (MACHINE == "x86")
		return op ~ /^j/ && op !~ /^jmp/
	return op ~ /^(b\.|cbn?z|tbn?z)/
}
# Whether it stores a descriptor's address at rseq_cs, 8 bytes up the area.
function registers(line)
{
	if (MACHINE == "x86")
		return line ~ / mov .*,0x8\(%r..?\)[ \t]*$/
	return line ~ /[ \t]str[ \t].*, #8\]/
}
EOF

# path NAME MOST STORES [TAKEN] - walks from NAME to its return, no branch taken
# but the first TAKEN ones, each of which stores once more before the section.
path() {
	start=$(awk -v name="$1" '$8 == name { sub(/^0+/, "", $2); print $2
		exit }' "$tap_work/symbols")
	[ -n "$start" ] || { echo "no symbol $1"; return 1; }
	awk -v MACHINE="$machine" -v start="$start" -v most="$2" \
		-v want="$3" -v taken="${4:-0}" -f "$tap_work/what.awk" \
		-f "$tap_work/path.awk" "$tap_work/code"
}

cat >"$tap_work/path.awk" <<'EOF'
{ line[NR] = $0; at[$1] = NR }
function fault(why)
{
	print why (l in line ? ": " line[l] : "")
	faults++
}
END {
	if (!(l = at[start]))
		fault("nothing at " start)
	while (l && !ended && !faults) {
		split(line[l], f, /[ \t]+/)
		n++
		if (calls(f[2]))
			fault("a call")
		if (locks(line[l]))
			fault("waits for other CPUs")
		if (stores(line[l], f[2]))
			store[++n_stores] = line[l]
		ended = returns(f[2])
		target = jumps(f[2], f[3])
		if (branches(f[2]) && n_branches++ < taken)
			target = f[3]
		if (n > 200)
			fault("no end")
		else if (target == "")
			l++
		else if (!(l = at[target]))
			fault("leaves by a jump to " target)
	}
	print n " instructions, " n_stores " stores, " n_branches " branches"
	if (n > most)
		fault("more than " most " instructions")
	if (n_stores != want)
		fault(n_stores " stores instead of " want)
	if (!registers(store[1 + taken]))
		fault("rseq_cs is not the first store")
	if (n_branches < 3)
		fault("not a hit path: " n_branches + 0 " branches")
	exit faults > 0
}
EOF

# sections - "START END ABORT" of each descriptor.  The words that hold
# addresses are in the relocations, the length is in the file.
sections() {
	# shellcheck disable=SC2046 # words
	set -- $(awk '$2 == "__rseq_cs" { print $4, $5, $6 }' \
		"$tap_work/sections")
	od -An -v -tx8 -w32 -j $((0x$2)) -N $((0x$3)) "$EDDY_SO" |
		awk -v base="$1" '
	function hex(s,	i, v)
	{
		s = tolower(s)
		for (i = 1; i <= length(s); i++)
			v = v * 16 + index("0123456789abcdef",
			    substr(s, i, 1)) - 1
		return v
	}
	FILENAME != "-" {
		if ($3 ~ /_RELATIV/)
			value[hex($1)] = hex($4)
		next
	}
	{
		here = hex(base) + 32 * n++
		start = (here + 8) in value ? value[here + 8] : hex($2)
		abort = (here + 24) in value ? value[here + 24] : hex($4)
		printf "%x %x %x\n", start, start + hex($3), abort
	}' "$tap_work/relocations" -
}

# ends - in each section the last instruction, and of its stores that which
# comes last, is the commit; the one before it registers the descriptor; it
# neither calls nor returns; its abort lands outside.
ends() {
	sections >"$tap_work/ranges"
	cat "$tap_work/ranges"
	awk -v MACHINE="$machine" -f "$tap_work/what.awk" \
		-f "$tap_work/ends.awk" "$tap_work/ranges" "$tap_work/code"
}

cat >"$tap_work/ends.awk" <<'EOF'
FILENAME == ARGV[1] { start[++n] = $1; end[n] = $2; abort[n] = $3; next }
{ line[++lines] = $0; at[$1] = lines }
function fault(why) { print "section at " start[i] ": " why; faults++ }
END {
	for (i = 1; i <= n; i++) {
		first = at[start[i]]
		next_one = at[end[i]]
		to = at[abort[i]]
		if (!first || !next_one || next_one <= first || !to) {
			fault("is not code")
			continue
		}
		if (!registers(line[first - 1]))
			fault("starts behind " line[first - 1])
		split(line[next_one - 1], f, /[ \t]+/)
		if (!stores(line[next_one - 1], f[2]))
			fault("ends with " line[next_one - 1])
		for (l = first; l < next_one; l++) {
			split(line[l], f, /[ \t]+/)
			if (calls(f[2]) || returns(f[2]) ||
			    jumps(f[2], f[3]) != "")
				fault("has " line[l])
		}
		if (to >= first && to < next_one)
			fault("aborts into itself")
	}
	print n + 0 " sections"
	exit faults > 0 || n != 11
}
EOF

# Of aarch64 two more for each address, one for each operand in memory.
case $machine in
x86) malloc=26 counted=34 free=30 delete=26 ;;
arm) malloc=34 counted=46 free=34 delete=34 ;;
esac
ok "malloc: at most $malloc instructions, two stores" path malloc "$malloc" 2
ok "operator new: at most $malloc, two stores" path _Znwm "$malloc" 2
ok "operator new, nothrow: at most $malloc, two stores" \
	path _ZnwmRKSt9nothrow_t "$malloc" 2
ok "malloc, counted: at most $counted instructions, three stores" \
	path malloc "$counted" 3 1
ok "operator new, counted: at most $counted, three stores" \
	path _Znwm "$counted" 3 1
ok "free: at most $free instructions, three stores" path free "$free" 3
ok "operator delete, sized: at most $delete, three stores" \
	path _ZdlPvm "$delete" 3
ok 'each section ends with its commit and aborts elsewhere' ends
# The walk sees what it should: calloc calls memset.
refuses() {
	path calloc 1000 2 >"$tap_work/refusal"
	cat "$tap_work/refusal"
	grep -q '^a call: ' "$tap_work/refusal"
}
ok 'a path with a call is refused' refuses
tap_end

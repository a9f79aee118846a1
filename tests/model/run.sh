#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh [quick|all] - every model must pass, every mutant must be rejected.
#
# TAP, one point each, two at a time (EDDY_MODEL_JOBS).  A model passes when
# the whole of its states was searched and no assertion failed; a mutant is
# rejected when an assertion failed.  Anything else, a truncated search or a
# model that does not build, is a failure.

here=$(cd "$(dirname "$0")" && pwd) || exit 99
CC=${CC:-cc}

# What, where (q: in the quick subset too), model, flags.
table()
{
	cat <<'END'
pass q slab -DREFILLS=2 -DKILL=1
pass a slab -DRUNS -DREFILLS=2
pass a slab -DNP=3 -DLAST=0
pass a slab -DNP=3
pass a slab -DNP=3 -DLAST=0 -DKILL=1
fail q slab -DREFILLS=2 -DNOVALIDATE
fail a slab -DREFILLS=2 -DCHECKFIRST
fail q slab -DREFILLS=2 -DNORELOOK
fail a slab -DREFILLS=2 -DEARLYIDX
fail a slab -DREFILLS=2 -DSTALETAG
fail a slab -DREFILLS=2 -DTAGLATE
fail a slab -DREFILLS=2 -DCOUNTER
fail a slab -DREFILLS=2 -DRETIRESTORE
fail a slab -DREFILLS=2 -DRETIREBLIND
fail a slab -DREFILLS=2 -DROLLBARE
fail a slab -DREFILLS=2 -DBACKNOHINT
fail a slab -DREFILLS=2 -DBACKNOLOOK
fail a slab -DREFILLS=2 -DPAGEFIRST
fail a slab -DREFILLS=2 -DIDXLATE
fail a slab -DREFILLS=2 -DPLAINOR
fail a slab -DREFILLS=2 -DKILL=1 -DFIRSTONLY
pass q pool -DNS=1
pass a pool
pass a pool -DNS=1 -DKILL
fail q pool -DNOGRACE
fail a pool -DGRACEFIRST
fail q pool -DGIVEALL
fail a pool -DADOPTLATE
fail a pool -DADOPTSTORE
fail a pool -DGIVESTORE
fail q pool -DNS=1 -DOPS=2 -DRETIREPOOL
fail a pool -DLIVERETIRE
pass q pool_hold -DKILL
pass a pool_hold -DLOOKS=3 -DLIVES=3
fail q pool_hold -DENDBLIND
fail a pool_hold -DENDSTORE
fail a pool_hold -DANYHOLDER
fail a pool_hold -DHOLDSTORE
fail a pool_hold -DRELEASESTORE
fail a pool_hold -DNOFINISH
fail a pool_hold -DENDLATE
pass q dfree
fail a dfree -DLOOKTHENOR
fail a dfree -DTAGALONE
fail a dfree -DBLINDBIRTH
pass q index -DGETS=2 -DKILL=1
pass q index -DGETS=2 -DKILL=1 -DCLIMB
pass a index -DNP=3
pass a index -DNP=3 -DKILL=1
fail a index -DGETS=2 -DHINTFIRST
fail a index -DGETS=2 -DTOPDOWN
fail q index -DGETS=2 -DNORELOOKLOW
fail a index -DGETS=2 -DNORELOOKMID
fail a index -DGETS=2 -DNORELOOKTOP
fail a index -DGETS=2 -DSETONE
fail q index -DGETS=2 -DKILL=1 -DSTOPLOW
fail a index -DGETS=2 -DKILL=1 -DSTOPMID
pass q runs
pass a runs -DOPS=1 -DKILL=1
pass a runs -DOPS=1 -DKILL=2
pass a runs -DANYPLACE
pass q runs -DTWICE -DKILL=1
fail q runs -DMIXED
fail a runs -DPLAINAND
fail a runs -DBITSFIRST
fail a runs -DDIRTYEARLY
fail a runs -DNODIRTY
fail a runs -DPLAINMARK
fail a runs -DNOCLAIM
fail a runs -DCLEARLATE
fail a runs -DCLEARFIRST
fail q runs -DPLAINCLEAR
fail a runs -DTWICE -DREADTAG
pass q region
fail q region -DNOBUSY
fail a region -DMARKSFIRST
fail q region -DNOSETTLE
pass q runhint -DKILL=1
pass a runhint -DCLAIMS=2
pass a runhint -DCLAIMS=2 -DKILL=1
pass a runhint -DBITS=3 -DSTART0=7 -DSTART1=56 -DKILL=1
pass a runhint -DNP=3 -DSTART0=15 -DSTART1=0 -DHINTED=2 -DFIRST=0
pass a runhint -DNP=3 -DSTART0=1 -DSTART1=2 -DSTART2=12 -DFIRST=0
pass a runhint -DNP=3 -DSTART0=1 -DSTART1=2 -DSTART2=12 -DCLAIMS=0 -DLAST=1 -DKILL=2
fail q runhint -DNORELOOK
fail a runhint -DLOOKFIRST
fail a runhint -DHINTFIRST
fail a runhint -DLENBEFORE
fail q runhint -DLENSTALE
fail q runhint -DOWNLEN
fail a runhint -DNP=3 -DSTART0=15 -DSTART1=0 -DHINTED=2 -DFIRST=0 -DFIRSTBIT
fail a runhint -DNODOWN
fail a runhint -DNORELOOKTOP
fail a runhint -DTOPDOWN
fail a runhint -DPLAINOR
fail q runhint -DKILL=1 -DSTOPEARLY
pass q chunk
pass a chunk -DSTART0=0
pass a chunk -DSTART0=2
pass a chunk -DKILL=1
pass a chunk -DSTART0=0 -DKILL=1
pass a chunk -DSTART0=2 -DKILL=1
pass a chunk -DNP=3 -DOPS=1 -DLAST=0
pass a chunk -DSPARE -DOPS=2
pass q chunk -DSPARE -DKILL=1
pass a chunk -DSPARE -DOPS=2 -DLAST=1 -DKILL=1
pass q chunk -DDIRTY -DSTART0=2
pass a chunk -DDIRTY
fail q chunk -DBELIEVE
fail a chunk -DPUTFIRST
fail a chunk -DHINTSLATE
fail a chunk -DOWNERFIRST
fail a chunk -DSTALEOWNER
fail a chunk -DNORELOOK
fail a chunk -DOWNERLATE
fail q chunk -DGROWBLIND
fail a chunk -DKEEPHALF
fail a chunk -DKILL=1 -DNOHINTBACK
fail a chunk -DKILL=1 -DROLLOLD
fail q chunk -DDIRTY -DNOUNIFORM
fail a chunk -DDIRTY -DKEEPBITS
fail a chunk -DDIRTY -DNODIRTYUP
pass q board -DOPS=1 -DKILL=1
pass a board
pass a board -DKILL=1
pass a board -DNP=3 -DOPS=1 -DSLOTS=2
fail q board -DNOSAME
fail a board -DSLOTONLY -DOPS=3
fail q board -DNOTICKET
fail a board -DTICKETLATE
fail a board -DFREEFIRST
fail a board -DKEEP
fail a board -DBLINDTAKE
fail a board -DBLINDSHOW
fail a board -DNOFREE
fail a board -DSHOWEARLY
pass q cells
fail a cells -DLOADSTORE
fail a cells -DBLINDPUT
fail a cells -DSWEEPCOPY
pass q ring -DOPS=2 -DLAST=2 -DKILL=1
pass a ring
pass a ring -DOPS=2 -DLAST=3 -DKILL=1
pass a ring -DFRESH -DND=1 -DKILL=1
pass a ring -DFRESH -DND=2 -DOPS=2 -DLAST=3 -DKILL=2
pass a ring -DNP=3 -DOPS=1 -DLAST=1 -DKILL=1
pass a ring -DNP=3 -DOPS=2 -DLAST=1
pass a ring -DTAGPUSH
fail q ring -DNOTAG
fail a ring -DSTALELINK
fail a ring -DLINKAFTER
fail a ring -DLINKLATE
fail a ring -DLINKONCE
fail a ring -DBLINDDROP
fail a ring -DFRESH -DPLAINADD
fail a ring -DFRESH -DUNCOUNT
fail a ring -DNLATE
fail a ring -DPLATE
fail a ring -DBLINDPUT
fail q ring -DBITALONE
fail a ring -DNOSPARE
fail a ring -DLOADSTORE
fail a ring -DBELIEVE
fail q ring -DDROPEARLY
fail a ring -DFULLTRUE
fail a ring -DFULLKEEP
pass q ring_spill -DOPS=2 -DLAST=2
pass a ring_spill
pass a ring_spill -DOPS=2 -DLAST=3 -DKILL=1
pass a ring_spill -DOPS=1 -DLAST=5
pass a ring_spill -DOPS=1 -DLAST=5 -DCAP=3
pass a ring_spill -DOPS=1 -DLAST=5 -DCAP=3 -DTAGPUSH
pass a ring_spill -DNP=3 -DOPS=1 -DLAST=1
fail q ring_spill -DOPS=1 -DLAST=5 -DNOTAG
fail a ring_spill -DOPS=1 -DLAST=5 -DCAP=3 -DTOPONLY
fail q ring_spill -DDEPTHBEFORE
fail a ring_spill -DDEPTHONCE
fail a ring_spill -DDEPTHLATE
fail a ring_spill -DOPS=2 -DLAST=2 -DKILL=1 -DCOUNTER
fail a ring_spill -DNOCAP
fail a ring_spill -DFULLTRUE
fail a ring_spill -DFULLKEEP
fail a ring_spill -DLINKLATE
fail a ring_spill -DLINKONCE
fail a ring_spill -DSTALELINK
fail a ring_spill -DBLINDPUSH
fail a ring_spill -DPOPSTORE
fail a ring_spill -DPOPALL
fail a ring_spill -DDROPEARLY
fail a ring_spill -DTWOHELD
pass q home
pass a home -DREHOME
fail q home -DHOMEBEFORE
fail a home -DSLOTBEFORE
fail a home -DHOMELATE
fail a home -DHOMEHERE
fail a home -DFREEHERE
fail a home -DREFILLHERE
fail a home -DFALLBACKROW
fail a home -DRINGMINE
fail a home -DREHOME -DTAGEARLY
fail a home -DREHOME -DNOVALIDATE
pass q gather
pass a gather -DKILL=1
pass a gather -DLOOKS=1 -DNP=3
fail a gather -DCLOCKFIRST
fail a gather -DBLINDSTAMP
fail a gather -DFLAG
fail q gather -DNOTEFIRST
pass q bind -DMOVERS=1 -DCLAIMS=2
pass a bind
pass a bind -DCLAIMS=2 -DOTHERS=0
pass a bind -DCLAIMS=2 -DOTHERS=0 -DMOVERS=1 -DMOVES=2
fail q bind -DBLINDCLAIM
fail a bind -DVALUEONLY
fail a bind -DNOTAG
fail a bind -DONCE
fail a bind -DOWNERLATE
fail a bind -DMAPONCE
fail a bind -DCLAIMS=2 -DOTHERS=0 -DMOVERS=1 -DMOVES=2 -DMAPQUIET
fail a bind -DUNKNOWNFIRST
fail a bind -DSAYWHAT
fail a bind -DNOLOOK
fail a bind -DOWNERONLY
fail a bind -DNODEONLY
pass q slot
pass q slot -DDRAINERS=0
pass a slot -DDRAINERS=2
pass a slot -DBATCH -DTAKE2
pass a slot -DBATCH -DOPENED -DOBJ3
pass a slot -DBATCH -DOPENED -DOBJ3 -DDRAINERS=0
pass a slot -DRESIZE
pass a slot -DRESIZE -DONEOWNER -DDRAINERS=2 -DSTARTS=2
pass a slot -DSTUCK
pass a slot -DSTUCK -DONEOWNER -DDRAINERS=2
pass q slot -DRESCUE -DONEOWNER -DDRAINERS=2
pass a slot -DRESCUE -DONEOWNER -DDRAINERS=2 -DSTARTS=2 -DTAKE2
pass a slot -DOPENED -DSTARTS=2 -DTAKE2
pass a slot -DOPENED -DONEOWNER -DDRAINERS=2 -DSTARTS=2
pass a slot -DOPENED -DONEOWNER -DDRAINERS=2 -DSTARTS=2 -DBATCH -DTAKE2
fail q slot -DVIRGINOPEN
fail a slot -DVIRGINOPEN -DDRAINERS=0 -DBATCH
fail a slot -DVIRGINTWO
fail a slot -DNOBARRIER1
fail a slot -DNOBARRIER2
fail a slot -DOPENED -DONEOWNER -DDRAINERS=2 -DSTARTS=2 -DLOOKAGAIN
fail a slot -DOPENED -DONEOWNER -DDRAINERS=2 -DSTARTS=2 -DNOEPOCH
fail q slot -DOPENED -DONEOWNER -DDRAINERS=2 -DSTARTS=2 -DGENLATE
fail a slot -DONEOWNER -DDRAINERS=2 -DHELPSHORT
fail a slot -DOPENED -DONEOWNER -DDRAINERS=2 -DSTARTS=2 -DHELPCLOSED
fail a slot -DANYPHASE
fail a slot -DCURONLY
fail a slot -DCHECKBEFORE
fail a slot -DCASFIRST
fail a slot -DBATCH -DREFILLEARLY
fail a slot -DBATCH -DFLUSHWRAP
fail a slot -DBATCH -DOPENED -DOBJ3 -DDRAINERS=0 -DFLUSHLATE
fail a slot -DSTUCK -DNOCANCEL
fail a slot -DRESCUE -DONEOWNER -DDRAINERS=2 -DLEAVESTOPPED
fail a slot -DRESCUE -DONEOWNER -DDRAINERS=2 -DLEAVEDRAINED
pass q init
pass a init -DOPS=2
pass a init -DNP=3 -DLAST=0
pass a init -DOPENED -DLAST=3
fail a init -DPUBLISHFIRST
fail q init -DBLINDPUBLISH
fail a init -DKEEP
fail a init -DUNMAPHEAP
fail a init -DLIMITFIRST
fail a init -DHOLE
fail q init -DLIMITSTORE
fail a init -DREADYFIRST
fail q init -DMAPMORE
fail a init -DREADYKEPT
fail a init -DUNMAPLATE
fail a init -DOPENED -DLAST=3 -DREADYSTALE
pass q hooks -DKILL
pass a hooks -DOPS=3
pass q hooks -DTWICE -DKILL
pass q hooks -DPAGES -DKILL
fail q hooks -DREADYSTALE
fail a hooks -DREADYKEPT
fail a hooks -DPUTFIRST
fail q hooks -DDROPLATE
fail a hooks -DTWICE -DBLINDKNOW
fail a hooks -DPAGES -DLOOKFIRST
fail q hooks -DPAGES -DLOOKBEFORE
pass q wake -DONE -DSPARE -DKILL
pass a wake -DONE -DSPARE -DOPS=2 -DKILL
pass a wake -DONE -DNP=3 -DKILL
pass q wake
pass a wake -DKILL
fail q wake -DONE -DONLYASLEEP
fail a wake -DONE -DLOADFIRST
fail a wake -DONE -DPLAINSLEEP
fail a wake -DONE -DLOOKFIRST
fail q wake -DNOSTANDIN
fail a wake -DONE -DKILL -DTWOSTEPS
pass q watch
pass a watch -DOPS=3
pass a watch -DKILL
pass a watch -DNP=3 -DOPS=1
fail q watch -DWATCHFIRST
fail a watch -DFULLONLY
fail a watch -DKEEPOPEN
fail a watch -DCLEARLATE
fail a watch -DNOCALL
fail a watch -DCALLFIRST
fail q watch -DKILL -DSETHIMSELF
pass a urcu -DNO=3 -DND=2
pass a urcu
pass a urcu -DKILL
pass q urcu -DNO=3 -DND=2 -DFORK
fail q urcu -DNO=3 -DND=2 -DFORK -DMARKLATE
fail a urcu -DNO=3 -DND=2 -DNOCLOSE
fail a urcu -DPUSHFIRST
fail a urcu -DNO=3 -DND=2 -DCLEARFREE
fail a urcu -DOPENLATE
fail a urcu -DTAKELATE
fail a urcu -DNOGRACE
fail a urcu -DLOOKFIRST
fail a urcu -DWAKEFIRST
fail a urcu -DBLINDPUT
pass q phase -DKILL
pass a phase -DNP=3 -DKILL
fail q phase -DPLAINCLAIM
fail a phase -DNORECHECK
fail a phase -DPLAINON
fail a phase -DFORGETGONE
END
}

# one work-folder want where model flags...
one()
{
	dir=$1/$$
	want=$2
	model=$4
	shift 4
	# A mutant falls soon: what it takes is to compile it.
	[ "$want" = pass ] && optimize=-O1 || optimize=-O0
	mkdir "$dir" && cp "$here/$model.pml" "$dir" && cd "$dir" || exit 1
	if ! spin -a "$@" "$model.pml" >log 2>&1 ||
	    ! $CC "$optimize" -w -DSAFETY -DCOLLAPSE -DMEMLIM=3000 -o pan pan.c \
		>>log 2>&1; then
		got="does not build: $(head -n 1 log)"
	else
		# of processor time: the machine may be busy
		# shellcheck disable=SC3045 # dash and bash have it
		(ulimit -t 150; exec ./pan -E -m1000000) >out 2>&1
		got=incomplete
		if grep -q 'assertion violated' out; then
			got=fail
		elif grep -q 'errors: 0' out && ! grep -Eq \
		    'too small|out of memory|not completed|interrupted' out; then
			got=pass
		fi
	fi
	states=$(awk '/states, stored/ { print $1; exit }' out 2>/dev/null)
	name="$model $*"
	[ "$want" = pass ] && what="holds" || what="is rejected"
	if [ "$got" = "$want" ]; then
		echo "ok - $name $what (${states:-0} states)"
	else
		echo "not ok - $name $what: $got (${states:-0} states)"
	fi
	cd / && rm -rf "$dir"
}

# shellcheck disable=SC2016 # for awk
case ${1:-quick} in
one)
	shift
	one "$@"
	exit 0
	;;
quick) pick='$2 == "q"' ;;
all) pick=1 ;;
*)
	echo "usage: run.sh [quick|all]" >&2
	exit 99
	;;
esac
for tool in spin $CC; do
	if ! command -v "$tool" >/dev/null 2>&1; then
		echo "1..0 # SKIP no $tool"
		exit 77
	fi
done
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 99' INT TERM
table | awk "$pick" >"$work/list"
echo "1..$(wc -l <"$work/list")"
xargs -L 1 -P "${EDDY_MODEL_JOBS:-2}" \
	sh "$here/run.sh" one "$work" <"$work/list" | tee "$work/tap"
! grep -q '^not ok' "$work/tap" &&
	[ "$(grep -c '^ok' "$work/tap")" = "$(wc -l <"$work/list")" ]

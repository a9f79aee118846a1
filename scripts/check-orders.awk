# SPDX-License-Identifier: BSD-2-Clause
#
# check-orders.awk - memory orders are argued where they stand.
#
#   awk -f check-orders.awk FILE...
#
# ROOM-R1 labels a release, ROOM-A1 the acquire that it pairs with, ROOM-F1 a
# fence or a stop that orders both ways; "ROOM-R1:" in a comment marks the
# access below it, "ROOM-R1" without the colon speaks of it.
#  - An access that orders has a label at most REACH lines above it.
#  - A relaxed access has a comment with the word "relaxed" as near, or a
#    label.
#  - A release label is answered by an acquire label of the same number, an
#    acquire label by a release label; a label spoken of marks something.
# In one function, a comment serves the accesses that follow each other.

BEGIN { REACH = 10 }

FNR == 1 { reason = label = -99 }

/^#[ \t]*define/ { continued = /\\$/; next }
continued { continued = /\\$/; next }

# A function ends: its reasons do not reach into the next.
/^}/ { reason = label = -99 }

{
	rest = $0
	while (match(rest, /[A-Z]+-[RAF][0-9]+/)) {
		# Invariants (I-ROOM-1) and the like are not labels.
		before = RSTART > 1 ? substr(rest, RSTART - 1, 1) : " "
		name = substr(rest, RSTART, RLENGTH)
		rest = substr(rest, RSTART + RLENGTH)
		if (before ~ /[A-Za-z0-9_-]/)
			continue
		if (rest ~ /^( and [A-Z]+-[RAF][0-9]+)?:/) {
			label = FNR
			marks[name] = FILENAME ":" FNR
		}
		spoken[name] = FILENAME ":" FNR
	}
}

/relaxed/ && /\*/ && !/eddy_[a-z0-9_]+_relaxed\(/ { reason = FNR }

/eddy_[a-z0-9_]+_(acquire|release|acq_rel|seq_cst)\(/ {
	if (FNR - label > REACH)
		fault("orders without a label")
	else
		label = FNR
}

/eddy_[a-z0-9_]+_relaxed\(/ {
	if (FNR - reason > REACH && FNR - label > REACH)
		fault("relaxed without a reason")
	else if (FNR - reason <= REACH)
		reason = FNR
}

function fault(what)
{
	print FILENAME ":" FNR ": " what
	n_faults++
}

END {
	for (name in spoken) {
		if (!(name in marks)) {
			print spoken[name] ": " name " marks no access"
			n_faults++
			continue
		}
		other = name
		if (name ~ /-R/)
			sub(/-R/, "-A", other)
		else if (name ~ /-A/)
			sub(/-A/, "-R", other)
		if (!(other in marks)) {
			print marks[name] ": " name " has no partner " other
			n_faults++
		}
	}
	exit n_faults > 0
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch.pml - rows are emptied when their CPUs are idle, and nobody looks while
 * there is nothing to be seen.
 *
 * Owners put objects into rows and take them out.  A row that is closed is
 * opened first; then its owner asks for a look if nobody is going to have one.
 * The looker says that he will not look again, looks, and takes it back if he
 * saw a row that is open.  He closes the rows of an idle CPU, which is any at
 * any time here, and in the end all.  Draining is one step (slot.pml has it
 * all), and so is the word that the looker sleeps on (wake.pml).
 *
 * At the end the looker sleeps for ever, and no row holds anything but one whose
 * opener is dead (-DKILL, at any step) and had not asked.  README.md lists the
 * mutants.
 */
#ifndef NP
#define NP	2
#endif
#ifndef OPS
#define OPS	2		/* of each owner */
#endif
#define ROWS	2
#define LIVE	!dead[me]

bool opened[ROWS], holds[ROWS];
bool watched;			/* he looks again by himself */
bool asked = 1;			/* look_at is 0 */
bool called;			/* the word that he sleeps on */
bool dead[NP], ended[NP];

/* ghosts */
byte owes[ROWS];		/* who has opened it, and not asked: number + 1 */

#define GONE(i)	(ended[i] || dead[i])
#define ALL_ENDED	(GONE(0) && GONE(1) && GONE(NP - 1))

proctype owner(byte me)
{
	byte k = OPS, r;

next:
	atomic { LIVE;
		if
		:: !k -> ended[me] = 1; goto out
		:: k -> k--; r = 0
		:: k -> k--; r = 1
		fi };
	if
	:: atomic { LIVE && opened[r]; holds[r] = 1; goto next }	/* free */
	:: atomic { LIVE && opened[r]; holds[r] = 0; goto next }	/* malloc */
	:: atomic { LIVE && !opened[r] }
	fi;
#ifdef WATCHFIRST
	atomic { LIVE; if :: watched -> goto opens :: else fi };
	atomic { LIVE; asked = 1 };
	atomic { LIVE; called = 1 };
opens:
	atomic { LIVE; opened[r] = 1 };
#else
	atomic { LIVE;
		if
		:: !opened[r] -> opened[r] = 1; owes[r] = me + 1
		:: else
		fi };
	atomic { LIVE; if :: watched -> goto watch_done :: else fi };
#ifdef SETHIMSELF		/* the next opener believes it */
	atomic { LIVE; watched = 1 };
#endif
#ifdef CALLFIRST
	atomic { LIVE; called = 1 };
	atomic { LIVE; asked = 1 };
#else
	atomic { LIVE; asked = 1 };
#ifndef NOCALL
	atomic { LIVE; called = 1 };
#endif
#endif
watch_done:
	atomic { LIVE; if :: owes[r] == me + 1 -> owes[r] = 0 :: else fi };
#endif
	if
	:: atomic { LIVE && opened[r]; holds[r] = 1 }
	:: atomic { LIVE }		/* drained meanwhile, or moved away */
	fi;
	goto next;
out:
	skip
}

proctype looker()
{
	byte r;
	bool any, again;

look:
	atomic { called = 0; r = 0; any = 0; again = 0 };
	atomic { if :: !watched && !asked -> goto rest :: else fi };
	atomic { asked = 0 };
#ifndef CLEARLATE
	atomic { watched = 0 };
#endif
	do
	:: atomic { r < ROWS ->
#ifdef FULLONLY			/* what is open and empty does not count */
		if
		:: holds[r] && ALL_ENDED -> holds[r] = 0; opened[r] = 0
		:: holds[r] -> holds[r] = 0; opened[r] = 0
		:: holds[r] && !ALL_ENDED -> any = 1
		:: !holds[r]
		fi;
#else
		if
		:: opened[r] -> holds[r] = 0;
#ifndef KEEPOPEN		/* emptied, and left open */
			opened[r] = 0
#endif
		:: opened[r] && !ALL_ENDED -> any = 1
		:: !opened[r]
		fi;
#endif
		r++ }
	:: atomic { r == ROWS -> r = 0; break }
	od;
#ifdef CLEARLATE
	atomic { watched = 0 };
#endif
	if
	:: atomic { any -> any = 0; again = 1 };
	   atomic { watched = 1 }
	:: atomic { !any }
	fi;
rest:
	if
	:: atomic { again -> again = 0; goto look }	/* his time */
	:: atomic { !again };
	   atomic { called -> goto look }		/* for ever */
	fi
}

#ifdef KILL
proctype killer()
{
	byte v;

	select (v : 0 .. NP - 1);
	if :: atomic { !ended[v] -> dead[v] = 1 } :: true fi;
	v = 0
}
#endif

#define LEFT(r)	(holds[r] && !(owes[r] && dead[(owes[r] - 1) % NP]))

init {
	atomic {
		run looker();
		run owner(0); run owner(1);
#if NP == 3
		run owner(2);
#endif
#ifdef KILL
		run killer()
#endif
	}
	atomic {
		timeout ->
		assert(!watched && !LEFT(0) && !LEFT(1))
	}
}

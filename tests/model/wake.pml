/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wake.pml - who sleeps, and who wakes him: the words of two background
 * threads and of those who have work for them.
 *
 * Worker 0 is there from the start, worker 1 comes at any time or never; a
 * worker does the part of its own number, worker 0 also that of one that is
 * not there.  A caller leaves work for a home and calls.  A sleep has an end
 * or none; a caller may spare a worker that wakes soon enough by itself.
 *
 * -DONE: worker 0 and its home alone; -DSPARE: callers that spare.
 *
 * At the end all workers sleep without an end, and no work is left but what a
 * dead caller left last.
 */
#ifndef NP
#define NP	2		/* callers */
#endif
#ifndef OPS
#define OPS	1
#endif
#define LIVE	!dead[me]

#define RUNS	1
#define ASLEEP	2
#define CALLED	4
#define WOKEN	8

byte word[2];
bool timed[2];			/* until: soon, or for ever */
bool sleeping[2];		/* in the kernel */
bool work[2];
byte last[2];			/* ghost: who has left it */
bool dead[NP], ended[NP];

proctype worker(byte i)
{
	byte part;

	if
	:: i == 1 -> goto absent
	:: i >= 0
	fi;

look:
#ifdef LOOKFIRST		/* before the exchange */
	atomic { part = i; goto step };
exchange:
	atomic { word[i] = RUNS; goto announce };
#else
	atomic { word[i] = RUNS; part = i };
#endif
step:
	atomic { work[part] = 0;
		if
#ifndef ONE
		:: i == 0 && part == 0 -> part = 1
#endif
		:: else -> part = 0; goto stepped
		fi }
	atomic {
		if
		:: !(word[1] & RUNS) -> goto step
		:: word[1] & RUNS -> part = 0
		fi }
stepped:
#ifdef LOOKFIRST
	goto exchange;
#endif
announce:
#ifdef SPARE
	if
	:: timed[i] = 1
	:: timed[i] = 0
	fi;
#endif
#ifdef PLAINSLEEP		/* a store, not a CAS */
	atomic { word[i] = RUNS | ASLEEP };
#else
	atomic {
		if
		:: word[i] == RUNS -> word[i] = RUNS | ASLEEP
		:: else -> goto look
		fi };
#endif
	/* the kernel compares and sleeps in one step */
	atomic {
		if
		:: word[i] == (RUNS | ASLEEP) -> sleeping[i] = 1
		:: else -> goto look
		fi };
	if
	:: atomic { !sleeping[i] }
	:: atomic { timed[i] -> sleeping[i] = 0 }	/* its time */
	fi;
	goto look;
absent:
	skip
}

proctype caller(byte me, n)
{
	byte i, was;
	bool spare;

next:
	atomic { i = 0; was = 0; spare = 0 };
	if
	:: atomic { LIVE && n == 0 -> ended[me] = 1; goto out }
	:: atomic { LIVE && n > 0 -> n--; i = 0 }
#ifndef ONE
	:: atomic { LIVE && n > 0 -> n--; i = 1 }
#endif
#ifdef SPARE
	:: atomic { LIVE && n > 0 -> n--; i = 0; spare = 1 }
#endif
	fi;
	atomic { LIVE; work[i] = 1; last[i] = me };
	/* eddy_wake_by asks first whether there are threads at all */
	if
	:: atomic { LIVE && !(word[0] & RUNS) -> goto next }
	:: atomic { LIVE && (word[0] & RUNS) }
	fi;
call:
#ifdef ONLYASLEEP		/* no note for who is awake */
	atomic { LIVE; was = word[i];
		if
		:: was & ASLEEP -> word[i] = was | CALLED
		:: else
		fi };
#elif defined(LOADFIRST)	/* a load, and a store */
	atomic { LIVE; was = word[i] };
	atomic { LIVE; word[i] = was | CALLED };
#else
	atomic { LIVE; was = word[i]; word[i] = was | CALLED };
#endif
	if
#ifdef NOSTANDIN
	:: atomic { LIVE && !(was & RUNS) -> goto next }
#else
	:: atomic { LIVE && !(was & RUNS) && i == 1 -> i = 0; goto call }
	:: atomic { LIVE && !(was & RUNS) && i == 0 -> goto next }
#endif
	:: atomic { LIVE && (was & RUNS) &&
		(was & (ASLEEP | WOKEN)) != ASLEEP -> goto next }
	:: atomic { LIVE && (was & RUNS) && (was & (ASLEEP | WOKEN)) == ASLEEP }
	fi;
	if
	:: atomic { LIVE && spare && timed[i] -> goto next }
	:: atomic { LIVE && !(spare && timed[i]) }
	fi;
#ifdef TWOSTEPS			/* mark, then wake */
	atomic { LIVE;
		if
		:: word[i] & WOKEN -> goto next
		:: else -> word[i] = word[i] | WOKEN
		fi };
	atomic { LIVE; sleeping[i] = 0 };
#else
	atomic { LIVE; word[i] = word[i] | WOKEN; sleeping[i] = 0 };
#endif
	goto next;
out:
	skip
}

proctype killer()
{
	byte v;
	if
	:: skip
	:: atomic { select (v : 0 .. NP - 1);
		if :: !ended[v] -> dead[v] = 1 :: else fi; v = 0 }
	fi
}

init {
	byte i;

	atomic {
		word[0] = RUNS;
		for (i : 0 .. NP - 1) { run caller(i, OPS) };
		run worker(0);
#ifndef ONE
		run worker(1);
#endif
#ifdef KILL
		run killer();
#endif
		i = 0
	}
	/* A worker whose sleep ends always has a step. */
	timeout;
	atomic {
		for (i : 0 .. NP - 1) { assert(ended[i] || dead[i]) };
		for (i : 0 .. 1) {
			assert(!work[i] || dead[last[i]])
		}
	}
}

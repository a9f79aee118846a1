/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * phase.pml - background threads are started, stopped, and end with the main
 * thread: one word of phases.
 *
 * Starters are threads that create a thread; a stop and the end of the main
 * thread come at any time, or not at all.  The background thread goes round
 * until it finds that it is to end; who stops it waits for it, nobody else.
 *
 * At the end there is one if nobody has ended it, else none; there are never
 * two.  A starter that stands still for ever (-DKILL) holds up nobody.
 */
#ifndef NP
#define NP	2		/* starters */
#endif
#define LIVE	!dead[me]

#define OFF	0
#define STARTING 1
#define ON	2
#define STOPPING 3
#define PHASE	3
#define REVOKED	4
#define GONE	8

byte phase;
byte alive;
bool unwanted;
bool stopped, gone;		/* ghosts: has returned */
bool dead[NP], ended[NP];
byte n_ended;

proctype thread()
{
	do
	:: atomic { (phase & PHASE) == STOPPING -> alive--; goto out }
	od;
out:
	skip
}

/* end_all; joins, and leaves the phase OFF */
inline end_all(ok)
{
	atomic { ok && !alive };
#ifdef FORGETGONE
	atomic { ok; phase = OFF };
#else
	atomic { ok; phase = phase & GONE };
#endif
}

proctype starter(byte me)
{
	byte seen;

	if
	:: atomic { LIVE && (unwanted || phase != OFF) -> goto out }
	:: atomic { LIVE && !unwanted && phase == OFF }
	fi;
#ifdef PLAINCLAIM
	atomic { LIVE; phase = STARTING };
#else
	atomic { LIVE;
		if
		:: phase == OFF -> phase = STARTING
		:: else -> goto out
		fi };
#endif
#ifndef NORECHECK
	atomic { LIVE; seen = unwanted };
	if
	:: atomic { LIVE && seen -> phase = phase & GONE; goto out }
	:: atomic { LIVE && !seen }
	fi;
#endif
	if
	:: atomic { LIVE -> alive++; assert(alive == 1); run thread() }
	:: atomic { LIVE -> phase = phase & GONE; goto out }	/* EAGAIN */
	fi;
#ifdef PLAINON
	atomic { LIVE; phase = ON; goto out };
#endif
	atomic { LIVE;
		if
		:: phase == STARTING -> phase = ON; goto out
		:: else
		fi };
	/* revoked, or the main thread is gone */
	atomic { LIVE; assert((phase & PHASE) == STARTING);
		phase = STOPPING | (phase & GONE) };
	end_all(LIVE);
out:
	atomic { LIVE; ended[me] = 1; n_ended++ }
}

/* stop; b is GONE for the end of the main thread */
proctype stopper(byte b)
{
	byte seen, want;

	if
	:: skip
	:: goto never_came
	fi;
	atomic {
		if
		:: !b -> unwanted = 1
		:: else
		fi };
	seen = phase;
again:
	atomic {
		want = seen | b;
		if
		:: (seen & PHASE) == STARTING -> want = want | REVOKED
		:: (seen & PHASE) == ON ->
			want = STOPPING | ((seen | b) & GONE)
		:: else
		fi;
		if
		:: phase == seen -> phase = want
		:: else -> seen = phase; goto again
		fi };
	if
	:: (seen & PHASE) == ON -> end_all(true)
	:: else
	fi;
	atomic {
		if
		:: b -> gone = 1
		:: else -> stopped = 1
		fi };
never_came:
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
	bool death;

	atomic {
		for (i : 0 .. NP - 1) { run starter(i) };
		run stopper(0); run stopper(GONE);
#ifdef KILL
		run killer();
#endif
		i = 0
	}
	timeout;
	atomic {
		for (i : 0 .. NP - 1) {
			assert(ended[i] || dead[i]);
			death = death || dead[i]
		};
		assert(alive <= 1);
		assert(death || !(stopped || gone) || alive == 0);
		assert(death || alive == 0 || phase == ON);
		assert(death || phase == ON || (phase & PHASE) == OFF);
		assert(death || !gone || (phase & GONE))
	}
}

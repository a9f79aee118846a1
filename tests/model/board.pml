/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * board.pml - a value of two words that is replaced as a whole.
 *
 * Writers change the world, and then show what it is: a ticket, a slot, a look
 * at the world, two words, one compare-and-swap of what is shown, and the old
 * slot is free.  A reader takes words that he may believe if the same is still
 * shown after.
 */
#ifndef NP
#define NP	2
#endif
#ifndef OPS
#define OPS	2
#endif
#ifndef SLOTS
#define SLOTS	3
#endif
#ifndef KILL
#define KILL	0
#endif
#define NONE	255
#define LIVE	!dead[me]

byte world;			/* counts changes */
byte tickets;
byte shown_ticket, shown_slot;	/* one word; ticket 0: nothing */
bool taken[SLOTS];
byte word0[SLOTS], word1[SLOTS];
byte held[NP] = NONE;		/* ghost: slot in hand */
byte promised;			/* ghost: the world as of a show that is over */
bool dead[NP], ended[NP];

proctype writer(byte me)
{
	byte n, mine, ticket, slot, v, t, s;

	n = OPS;
next:
	atomic { LIVE; slot = NONE; t = 0; s = 0; v = 0; mine = 0; ticket = 0;
		if
		:: n == 0 -> ended[me] = 1; goto out
		:: else -> n--; world++; mine = world
		fi }
#ifndef TICKETLATE
	atomic { LIVE; tickets++; ticket = tickets }
#endif
	s = 0;
TAKE:
	atomic { LIVE;
		if
		:: s == SLOTS -> s = 0; goto next	/* all are lost */
		:: s < SLOTS && taken[s] -> s++; goto TAKE
		:: else
		fi }
#ifdef BLINDTAKE
	atomic { LIVE; taken[s] = 1; slot = s; held[me] = s }
#else
	atomic { LIVE;
		if
		:: taken[s] -> s++; goto TAKE
		:: else -> taken[s] = 1; slot = s; held[me] = s
		fi }
#endif
	atomic { LIVE; s = 0; v = world }
#ifdef TICKETLATE
	atomic { LIVE; tickets++; ticket = tickets }
#endif
	atomic { LIVE; word0[slot] = v }
#ifdef SHOWEARLY
	goto SHOW;
LATE:
#endif
	atomic { LIVE; word1[slot] = v }
#ifdef SHOWEARLY
	atomic { LIVE; held[me] = NONE; goto DONE }
#endif
SHOW:
	atomic { LIVE; t = shown_ticket; s = shown_slot }
AGAIN:
#ifndef NOTICKET
	atomic { LIVE;
		if
		:: t > ticket -> t = 0; s = 0;
#ifndef KEEP
			taken[slot] = 0;
#endif
			held[me] = NONE; goto DONE
		:: else
		fi }
#endif
#ifdef FREEFIRST
	atomic { LIVE; if :: t -> taken[s] = 0 :: else fi }
#endif
	atomic { LIVE;
		if
#ifdef BLINDSHOW
		:: true ->
#else
		:: shown_ticket == t ->
#endif
			shown_ticket = ticket; shown_slot = slot;
			held[me] = (t -> s : NONE)
		:: else -> t = shown_ticket; s = shown_slot; goto AGAIN
		fi }
#if !defined(FREEFIRST) && !defined(NOFREE)
	atomic { LIVE; if :: t -> taken[s] = 0 :: else fi; held[me] = NONE }
#else
	atomic { LIVE; held[me] = NONE }
#endif
	atomic { LIVE; t = 0; s = 0 }
#ifdef SHOWEARLY
	goto LATE;
#endif
DONE:
	atomic { LIVE; if :: mine > promised -> promised = mine :: else fi;
		goto next }
out:
	skip
}

proctype reader()
{
	byte t, s, a, b, p, n;

	n = 2;
again:
	atomic { t = shown_ticket; s = shown_slot; p = promised; a = 0; b = 0 }
	if
	:: t == 0 -> assert(p == 0); goto out
	:: else
	fi;
	a = word0[s];
	b = word1[s];
#ifdef NOSAME
	atomic { assert(a == b && a >= p) };
#elif defined(SLOTONLY)
	atomic { if :: shown_slot == s -> assert(a == b && a >= p) :: else fi };
#else
	atomic { if :: shown_ticket == t -> assert(a == b && a >= p)
		:: else fi };
#endif
	atomic { if :: n > 1 -> n--; goto again :: else fi };
out:
	atomic { t = 0; s = 0; a = 0; b = 0; p = 0; n = 0 }
}

proctype killer()
{
	byte v, k;

	do
	:: k < KILL -> atomic { select (v : 0 .. NP - 1);
		if :: !ended[v] -> dead[v] = 1 :: else fi; v = 0; k++ }
	:: break
	od;
	k = 0
}

init {
	byte i, n;

	atomic {
		for (i : 0 .. NP - 1) { run writer(i) };
		run reader();
#if KILL
		run killer();
#endif
		i = 0
	}
	atomic {
		if
		:: (ended[0] || dead[0]) && (ended[1] || dead[1]) &&
		   (ended[NP - 1] || dead[NP - 1]) -> skip
		:: timeout -> assert(false)
		fi;
		/* A slot is free, shown, or in a dead hand. */
		for (i : 0 .. SLOTS - 1) {
			n = (shown_ticket && shown_slot == i);
			n = n + (dead[0] && held[0] == i);
			n = n + (dead[1] && held[1] == i);
#if NP > 2
			n = n + (dead[2] && held[2] == i);
#endif
			assert(n <= 1 && (taken[i] == n))
		};
		assert(shown_ticket || dead[0] || dead[1] || dead[NP - 1])
	}
}

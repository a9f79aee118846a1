/* SPDX-License-Identifier: BSD-2-Clause */
/* section_exits.c - lengths and branches of the x86-64 instructions in use. */
#include "section_exits.h"

#include <stdbool.h>
#include <string.h>

enum { NONE = 0, MODRM = 1, IMM8 = 2, IMM32 = 4, REL8 = 8, REL32 = 16 };

struct decoded {
	size_t length; /* 0: unknown */
	bool is_branch;
	int64_t displacement; /* of a branch, from the next instruction */
};

static bool
is_prefix(uint8_t b)
{
	return b == 0x66 || b == 0x67 || b == 0xf2 || b == 0xf3 || b == 0x64 ||
	       b == 0x65 || b == 0x2e || b == 0x3e || b == 0x26 || b == 0x36;
}

static int
shape_one(uint8_t op, uint8_t next)
{
	bool has_test_imm = (next >> 3 & 7) < 2;

	if (op < 0x40)
		return (op & 7) < 4 ? MODRM : (op & 7) == 4 ? IMM8 : IMM32;
	if (op >= 0x70 && op <= 0x7f)
		return REL8;
	if ((op >= 0x84 && op <= 0x8f) || (op >= 0xd0 && op <= 0xdf) ||
	    op == 0x63 || op == 0xfe || op == 0xff)
		return MODRM;
	if (op == 0xf6)
		return has_test_imm ? MODRM | IMM8 : MODRM;
	if (op == 0xf7)
		return has_test_imm ? MODRM | IMM32 : MODRM;
	if (op >= 0xb0 && op <= 0xb7)
		return IMM8;
	if (op >= 0xb8 && op <= 0xbf)
		return IMM32;
	switch (op) {
	case 0x6b:
	case 0x80:
	case 0x83:
	case 0xc0:
	case 0xc1:
	case 0xc6:
		return MODRM | IMM8;
	case 0x69:
	case 0x81:
	case 0xc7:
		return MODRM | IMM32;
	case 0x6a:
	case 0xa8:
		return IMM8;
	case 0x68:
	case 0xa9:
		return IMM32;
	case 0xe0:
	case 0xe1:
	case 0xe2:
	case 0xe3:
	case 0xeb:
		return REL8;
	case 0xe8:
	case 0xe9:
		return REL32;
	default:
		return NONE;
	}
}

static int
shape_two(uint8_t op)
{
	if (op >= 0x80 && op <= 0x8f)
		return REL32;
	if ((op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac ||
	    op == 0xba || op == 0xc2 || (op >= 0xc4 && op <= 0xc6))
		return MODRM | IMM8;
	if ((op >= 0xc8 && op <= 0xcf) || op == 0x05 || op == 0x0b ||
	    op == 0x31 || op == 0xa2)
		return NONE;
	return MODRM;
}

static size_t
modrm_length(const uint8_t *p)
{
	uint8_t mod = p[0] >> 6;
	uint8_t rm = p[0] & 7;
	size_t n = 1;

	if (mod == 3)
		return n;
	if (rm == 4) {
		n++;
		if (mod == 0 && (p[1] & 7) == 5)
			n += 4;
	} else if (mod == 0 && rm == 5) {
		n += 4;
	}
	return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

static struct decoded
decode(const uint8_t *code)
{
	struct decoded d = {0};
	const uint8_t *p = code;
	bool is_short = false;
	bool is_wide = false;
	int8_t rel8;
	int32_t rel32;
	uint8_t op;
	int shape;

	for (; is_prefix(*p); p++)
		is_short |= *p == 0x66;
	if ((*p & 0xf0) == 0x40)
		is_wide = (*p++ & 8) != 0;
	op = *p++;
	if (op == 0xc4 || op == 0xc5 || op == 0x62)
		return d;
	if (op != 0x0f) {
		shape = shape_one(op, *p);
		if (op >= 0xb8 && op <= 0xbf && is_wide)
			p += 4;
	} else if (*p == 0x38 || *p == 0x3a) {
		shape = *p == 0x38 ? MODRM : MODRM | IMM8;
		p += 2;
	} else {
		shape = shape_two(*p++);
	}
	if ((shape & MODRM) != 0)
		p += modrm_length(p);
	if ((shape & REL8) != 0) {
		memcpy(&rel8, p, 1);
		d.displacement = rel8;
		p += 1;
	}
	if ((shape & REL32) != 0) {
		memcpy(&rel32, p, 4);
		d.displacement = rel32;
		p += 4;
	}
	p += (shape & IMM8) != 0 ? 1 : 0;
	p += (shape & IMM32) == 0 ? 0 : is_short ? 2 : 4;
	d.is_branch = (shape & (REL8 | REL32)) != 0;
	d.length = (size_t)(p - code);
	return d;
}

static size_t
add(uint64_t *exits, size_t n, size_t max, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		if (exits[i] == at)
			return n;
	if (n < max)
		exits[n++] = at;
	return n;
}

size_t
section_exits(const struct section *s, const uint8_t *code, uint64_t *ret_exits,
    size_t max_exits)
{
	size_t n = add(ret_exits, 0, max_exits, s->start + s->length);

	n = add(ret_exits, n, max_exits, s->abort);
	for (uint64_t at = 0; at < s->length;) {
		struct decoded d = decode(code + at);
		uint64_t target;

		if (d.length == 0)
			break;
		at += d.length;
		target = s->start + at + (uint64_t)d.displacement;
		if (d.is_branch && target - s->start >= s->length)
			n = add(ret_exits, n, max_exits, target);
	}
	return n;
}

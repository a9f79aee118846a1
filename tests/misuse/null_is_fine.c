/* SPDX-License-Identifier: BSD-2-Clause */
/* null_is_fine.c - what looks like misuse and is none, checked mode included.
 */
#include "../probe.h"

static int
fine(void)
{
	void *p;

	p_free(NULL);
	if (p_usable(NULL) != 0)
		return 1;
	p = p_realloc(NULL, 100);
	/* Right after a free the same address may come again. */
	for (int i = 0; i < 1000; i++) {
		p_free(p);
		p = p_malloc(100);
	}
	p_free(p);
	for (int i = 0; i < 200; i++) {
		p = p_malloc(300000);
		p_free(p);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	static const char *const conf[] = {
	    "", "check:true", "rseq:false", "check:true,rseq:false"};

	tap_begin(argv);
	if (argc > 1)
		return fine();
	tap_guard(30);
	for (size_t i = 0; i < COUNT(conf); i++) {
		(void)setenv("EDDY_CONF", conf[i], 1);
		tap_ok(probe_again(argv, "fine", conf[i]),
		    "NULL and reuse are fine (%s)",
		    *conf[i] != '\0' ? conf[i] : "default");
	}
	return tap_end();
}

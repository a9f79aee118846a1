# SPDX-License-Identifier: BSD-2-Clause
#
# gen-prefixed.awk - what --with-jemalloc-prefix makes of the interface.  The
# first file is lib/eddy.map, whose names get the prefix; those of C++, of
# threads and vfork are left out, and so belong to the C library again.
#
#   awk -v prefix=P -v out=syms   -f gen-prefixed.awk eddy.map    for objcopy
#   awk -v prefix=P -v out=keep   -f gen-prefixed.awk eddy.map    for objcopy
#   awk -v prefix=P -v out=header -f gen-prefixed.awk eddy.map FILE
#                                        <eddy/eddy.h> or <eddy/eddy.hpp>

BEGIN {
	# Declared by the C library's headers, and not by ours.
	n_libc = split("void *malloc(size_t size)|" \
	    "void *calloc(size_t n, size_t size)|" \
	    "void *realloc(void *p, size_t size)|" \
	    "void *reallocarray(void *p, size_t n, size_t size)|" \
	    "void free(void *p)|" \
	    "int posix_memalign(void **ret, size_t align, size_t size)|" \
	    "void *aligned_alloc(size_t align, size_t size)|" \
	    "void *memalign(size_t align, size_t size)|" \
	    "void *valloc(size_t size)|" \
	    "void *pvalloc(size_t size)|" \
	    "size_t malloc_usable_size(void *p)|" \
	    "int malloc_trim(size_t pad)|" \
	    "int mallopt(int param, int value)|" \
	    "void malloc_stats(void)|" \
	    "int malloc_info(int options, FILE *stream)|" \
	    "struct mallinfo mallinfo(void)|" \
	    "struct mallinfo2 mallinfo2(void)", proto, "|")
	for (i = 1; i <= n_libc; i++) {
		match(proto[i], /[a-z_0-9]+\(/)
		name = substr(proto[i], RSTART, RLENGTH - 1)
		libc[name] = 1
		proto[i] = substr(proto[i], 1, RSTART - 1) prefix \
		    substr(proto[i], RSTART) ";"
	}
}

NR == FNR {
	sub(/#.*/, "")
	if (/local:/)
		done = 1
	gsub(/[ \t;]/, "")
	if (done || !/^[a-z][a-z0-9_]*$/ || /^(pthread_create|thrd_create|vfork)$/)
		next
	ours[$0] = 1
	if (out == "syms")
		print $0, prefix $0
	else if (out == "keep")
		print prefix $0
	next
}

# Words, but not "malloc_stats_print(3)", a page of the manual.
function renamed(s,    t, word, is_name) {
	t = ""
	while (match(s, /[A-Za-z0-9_]+/)) {
		word = substr(s, RSTART, RLENGTH)
		t = t substr(s, 1, RSTART - 1)
		s = substr(s, RSTART + RLENGTH)
		is_name = word in ours && !(word in libc)
		if (is_name && s !~ /^\([1-9]\)/)
			t = t prefix
		t = t word
	}
	return t s
}

{
	gsub(/std::free\(/, "::" prefix "free(")
	gsub(/std::calloc\(/, "::" prefix "calloc(")
	print renamed($0)
}

/^#include <stdlib.h>/ {
	print "#include <malloc.h>"
}

/^extern "C" \{/ && !declared++ {
	getline
	print
	print ""
	print "/* The C library's, by the names that they have here. */"
	for (i = 1; i <= n_libc; i++)
		print proto[i]
}

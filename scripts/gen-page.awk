# SPDX-License-Identifier: BSD-2-Clause
#
# gen-page.awk - tools/map.html as strings of C: what stands before its line
# @DATA@, and what behind.  POSIX awk.
BEGIN {
	print "/* SPDX-License-Identifier: BSD-2-Clause */"
	print "/* map_page.inc - made by scripts/gen-page.awk. */"
	print "static const char *const page_before[] = {"
}

/^@DATA@$/ {
	print "\tNULL,\n};"
	print "static const char *const page_behind[] = {"
	next
}

{
	gsub(/\\/, "\\\\\\\\")
	gsub(/"/, "\\\"")
	print "\t\"" $0 "\","
}

END {
	print "\tNULL,\n};"
}

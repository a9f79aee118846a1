dnl SPDX-License-Identifier: BSD-2-Clause
dnl eddy.m4 - probes for compiler and linker flags.

dnl EDDY_CFLAG(VARIABLE, FLAG...): append to VARIABLE each FLAG that the
dnl compiler takes without a word (clang only warns of what it does not know,
dnl so that warnings count as refusal).
AC_DEFUN([EDDY_CFLAG], [
m4_foreach_w([eddy_flag], [$2], [
AS_VAR_PUSHDEF([eddy_cv], [eddy_cv_cflag_[]eddy_flag])
AC_CACHE_CHECK([whether $CC takes eddy_flag], [eddy_cv], [
	eddy_save_CFLAGS=$CFLAGS
	CFLAGS="-Werror $CFLAGS eddy_flag"
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
		[AS_VAR_SET([eddy_cv], [yes])],
		[AS_VAR_SET([eddy_cv], [no])])
	CFLAGS=$eddy_save_CFLAGS])
AS_VAR_IF([eddy_cv], [yes], [AS_VAR_APPEND([$1], [" eddy_flag"])])
AS_VAR_POPDEF([eddy_cv])
])])

dnl EDDY_LDFLAG(VARIABLE, FLAG...): the same for flags of the linker.
AC_DEFUN([EDDY_LDFLAG], [
m4_foreach_w([eddy_flag], [$2], [
AS_VAR_PUSHDEF([eddy_cv], [eddy_cv_ldflag_[]eddy_flag])
AC_CACHE_CHECK([whether the linker takes eddy_flag], [eddy_cv], [
	eddy_save_LDFLAGS=$LDFLAGS
	LDFLAGS="$LDFLAGS -Wl,--fatal-warnings eddy_flag"
	AC_LINK_IFELSE([AC_LANG_PROGRAM()],
		[AS_VAR_SET([eddy_cv], [yes])],
		[AS_VAR_SET([eddy_cv], [no])])
	LDFLAGS=$eddy_save_LDFLAGS])
AS_VAR_IF([eddy_cv], [yes], [AS_VAR_APPEND([$1], [" eddy_flag"])])
AS_VAR_POPDEF([eddy_cv])
])])

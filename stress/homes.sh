#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# homes.sh - the short stress with two homes, of one CPU each.
exec sh "${0%/*}/variant.sh" topology:2x1x1 'with two homes' \
	freeze_step kill mixed flow

#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# claim.sh - the short stress without restartable sequences, in claim mode.
exec sh "${0%/*}/variant.sh" rseq:false 'in claim mode' \
	freeze freeze_step kill mixed fork_any flow

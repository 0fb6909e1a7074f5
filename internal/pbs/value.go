package pbs

import (
	"time"

	"github.com/roost-batch/roost"
)

// Size reads an amount of memory as PBS writes it, in whole KiB.
func Size(text string) (roost.Bytes, bool) { return parseSize(text) }

// Length reads a length of time as PBS writes it.
func Length(text string) (time.Duration, bool) { return parseLength(text) }

// Truth reads a boolean as PBS writes it.
func Truth(text string) (value, ok bool) { return parseTruth(text) }

package qsub

import (
	"time"

	"github.com/roost-batch/roost"
)

// ParseSizeValue reads an amount of memory as PBS writes it, in whole KiB.
func ParseSizeValue(text string) (roost.Bytes, bool) { return parseSize(text) }

// ParseDuration reads a length of time as PBS writes it.
func ParseDuration(text string) (time.Duration, bool) { return parseDuration(text) }

// ParseBool reads a boolean as PBS writes it.
func ParseBool(text string) (value, ok bool) { return parseBool(text) }

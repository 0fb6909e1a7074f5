package qsub

import (
	"time"

	"github.com/roost-batch/roost"
)

// ParseSizeValue parses a size in PBS's form, in whole KiB.
func ParseSizeValue(text string) (roost.Bytes, bool) { return parseSize(text) }

// ParseDuration parses a duration in PBS's form.
func ParseDuration(text string) (time.Duration, bool) { return parseDuration(text) }

// ParseBool parses a boolean in PBS's form.
func ParseBool(text string) (value, ok bool) { return parseBool(text) }

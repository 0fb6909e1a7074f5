package qsub

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// parseSize parses a size in PBS's form. It is a whole number of bytes or of words of 8
// bytes, with k, m, g, t or p before the unit for powers of 1024, in any case. The result
// is rounded up to a KiB.
func parseSize(s string) (roost.Bytes, bool) {
	end := len(s) - len(strings.TrimLeft(s, "0123456789"))
	n, err := strconv.ParseInt(s[:end], 10, 64)
	if err != nil {
		return 0, false
	}
	unit, word := strings.ToLower(s[end:]), int64(1)
	if strings.HasSuffix(unit, "w") {
		word = 8
	}
	if strings.HasSuffix(unit, "b") || word > 1 {
		unit = unit[:len(unit)-1]
	}
	power := strings.IndexByte(" kmgtp", (unit + " ")[0])
	if len(unit) > 1 || power < 0 || unit == " " {
		return 0, false
	}
	size := word << (10 * power)
	if n > (math.MaxInt64-int64(roost.KiB))/size {
		return 0, false
	}
	return (roost.Bytes(n*size) + roost.KiB - 1) / roost.KiB * roost.KiB, true
}

// maxDuration bounds durations: a hundred years.
const maxDuration = 100 * 365 * 24 * time.Hour

// parseDuration parses a duration in PBS's form: seconds, or
// [[[days:]hours:]minutes:]seconds (days: Torque). Fields may have any width, and seconds
// may have a fraction.
func parseDuration(s string) (time.Duration, bool) {
	whole, fraction, dotted := strings.Cut(s, ".")
	if dotted && (fraction == "" || strings.Trim(fraction, "0123456789") != "") {
		return 0, false
	}
	fields := strings.Split(whole, ":")
	scale := []float64{1, 60, 3600, 86400}
	if len(fields) > len(scale) {
		return 0, false
	}
	total := 0.0
	for i, f := range fields {
		n, err := strconv.ParseUint(f, 10, 53)
		if err != nil {
			return 0, false
		}
		total += float64(n) * scale[len(fields)-1-i]
	}
	if dotted {
		part, err := strconv.ParseFloat("0."+fraction, 64)
		if err != nil {
			return 0, false
		}
		total += part
	}
	if total > maxDuration.Seconds() {
		return 0, false
	}
	return time.Duration(math.Round(total * 1e9)), true
}

// wholeSeconds returns a duration in whole seconds, rounded up.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// parseBool parses a boolean in PBS's form.
func parseBool(s string) (value, ok bool) {
	switch strings.ToLower(s) {
	case "t", "true", "y", "1":
		return true, true
	case "f", "false", "n", "0":
		return false, true
	}
	return false, false
}

package qstat

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// sizeText formats memory for a column, rounded up. The unit is the requested one,
// gigabytes with -G, or megawords of 8 bytes with -M; a larger one replaces it if there
// are more than four digits.
func (t *AlternateList) sizeText(text string) string { return sizeIn(text, t.Gigabytes, t.Megawords) }

func sizeIn(text string, gigabytes, megawords bool) string {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n, err := strconv.ParseUint(text[:digits], 10, 63)
	if err != nil {
		return text
	}
	unit := strings.ToLower(text[digits:])
	in, words := max(strings.IndexByte(" kmgtp", (unit + " ")[0]), 0), strings.HasSuffix(unit, "w")
	out := in
	switch {
	case megawords:
		out = 2
	case gigabytes:
		out = 3
	}
	if words {
		n *= 8
	}
	for ; in < out; in++ {
		n = (n + 1023) / 1024
	}
	for ; in > out && n < 1<<53; in-- {
		n *= 1024
	}
	suffix := "b"
	if megawords || words && !gigabytes {
		n, suffix = (n+7)/8, "w"
	}
	for ; n > 9999 && out < 5; out++ {
		n = (n + 1023) / 1024
	}
	return strings.ReplaceAll(fmt.Sprintf("%d%c%s", n, " kmgtp"[out], suffix), " ", "")
}

// estimateText formats an estimated start in five columns. It shows the hour if it is
// today, the day in this week, the month in this year, or the year.
func estimateText(unix int64, now time.Time) string {
	at := time.Unix(unix, 0).In(now.Location())
	switch {
	case unix == 0 || at.Before(now):
		return "--"
	case at.Year() == now.Year() && at.YearDay() == now.YearDay():
		return at.Format("15:04")
	case at.Sub(now) < 7*24*time.Hour:
		return at.Format("Mon")[:2] + at.Format(" 15")
	case at.Year() == now.Year():
		return at.Format("Jan")
	case at.Year()-now.Year() < 5:
		return at.Format("2006")
	}
	return ">5yrs"
}

package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// WeeklyHours are hours of the week by the wall clock.
type WeeklyHours struct {
	Days     [7]bool // days on which they begin, from Sunday
	From, To int     // minutes of the day; From > To: until the next morning
	Text     string  // as written in the file
}

var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// ParseHours parses hours such as "Mon-Fri 08:00-18:00", "Sat,Sun 10:00-12:00" or
// "22:00-06:00", which means every day. The error is a roost.Invalid.
func ParseHours(text string) (WeeklyHours, error) {
	h := WeeklyHours{Text: text}
	bad := func(cause string) (WeeklyHours, error) {
		return WeeklyHours{}, fmt.Errorf(`hours %q: %w: %s: write them as "Mon-Fri 08:00-18:00"`, text,
			roost.Invalid, cause)
	}
	words := strings.Fields(text)
	switch len(words) {
	case 1:
		h.Days = [7]bool{true, true, true, true, true, true, true}
	case 2:
		for _, part := range strings.Split(words[0], ",") {
			first, last, isRange := strings.Cut(part, "-")
			a, b := dayNumber(first), dayNumber(last)
			if !isRange {
				b = a
			}
			if a < 0 || b < 0 {
				return bad(strconv.Quote(part) + " is neither a day nor days from one to another")
			}
			for d := a; ; d = (d + 1) % 7 {
				h.Days[d] = true
				if d == b {
					break
				}
			}
		}
	default:
		return bad("there are days and a time, or a time")
	}
	from, to, ok := strings.Cut(words[len(words)-1], "-")
	if h.From, h.To = parseMinute(from), parseMinute(to); !ok || h.From < 0 || h.To < 0 || h.From == 24*60 {
		return bad(strconv.Quote(words[len(words)-1]) + " is no time from one to another")
	}
	if h.From == h.To {
		return bad("it ends when it begins")
	}
	return h, nil
}

// dayNumber returns the number of a day, from Sunday; -1 for an invalid name.
func dayNumber(name string) int {
	name = strings.ToLower(name)
	for i, short := range dayNames {
		if strings.HasPrefix(name, short) && strings.HasPrefix(strings.ToLower(time.Weekday(i).String()), name) {
			return i
		}
	}
	return -1
}

// parseMinute parses "08:00" as a minute of the day, up to 24:00; -1 for an invalid time.
func parseMinute(text string) int {
	hours, minutes, ok := strings.Cut(text, ":")
	h, errH := strconv.ParseUint(hours, 10, 8)
	m, errM := strconv.ParseUint(minutes, 10, 8)
	if !ok || errH != nil || errM != nil || len(minutes) != 2 || m > 59 || h > 24 || h == 24 && m > 0 {
		return -1
	}
	return int(h*60 + m)
}

// Contains reports whether the wall clock time is within the hours.
func (h WeeklyHours) Contains(wall time.Time) bool {
	now, day := wall.Hour()*60+wall.Minute(), int(wall.Weekday())
	if h.From < h.To {
		return h.Days[day] && h.From <= now && now < h.To
	}
	return h.Days[day] && now >= h.From || h.Days[(day+6)%7] && now < h.To
}

func (h WeeklyHours) String() string { return h.Text }

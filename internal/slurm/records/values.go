package records

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Clock says how times are written.
type Clock struct {
	Now    time.Time
	Zone   *time.Location
	Format string // of SLURM_TIME_FORMAT: "standard", "relative" or a format of strftime; empty: the first
}

// Duration writes a time that was used, as 5:00, 1:05:00 or 2-01:05:00.
func Duration(d time.Duration) string {
	s := int64(d / time.Second)
	days, hours, minutes, seconds := s/86400, s/3600%24, s/60%60, s%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", days, hours, minutes, seconds)
	case hours > 0:
		return fmt.Sprintf("%d:%02d:%02d", hours, minutes, seconds)
	}
	return fmt.Sprintf("%d:%02d", minutes, seconds)
}

// longDuration is Duration with at least hours, as scontrol writes it.
func longDuration(d time.Duration) string {
	s := int64(d / time.Second)
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if s >= 86400 {
		text = strconv.FormatInt(s/86400, 10) + "-" + text
	}
	return text
}

// Time writes a time; otherwise is what stands for none.
func (c *Clock) Time(t time.Time, otherwise string) string {
	if t.IsZero() || t.UnixNano() == 0 {
		return otherwise
	}
	t = t.In(c.Zone)
	switch c.Format {
	case "", "standard":
		return t.Format("2006-01-02T15:04:05")
	case "relative":
		return c.relative(t)
	}
	return strftime(t, c.Format)
}

// relative writes a time by how far it is away.
func (c *Clock) relative(t time.Time) string {
	y, m, d := c.Now.In(c.Zone).Date()
	today := time.Date(y, m, d, 0, 0, 0, 0, c.Zone)
	switch days := int(t.Sub(today).Hours()) / 24; {
	case t.Before(today) && t.After(today.AddDate(0, 0, -1)):
		return t.Format("Ystday 15:04")
	case t.Before(today) || days > 6:
		return t.Format("2 Jan 15:04")
	case days == 0:
		return t.Format("15:04:05")
	case days == 1:
		return t.Format("Tomorr 15:04")
	}
	return t.Format("Mon 15:04")
}

// strftime writes a time by a format of strftime(3). What it does not know it leaves as
// it is.
func strftime(t time.Time, format string) string {
	layouts := map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06",
		'b': "Jan", 'h': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday", 'e': "_2", 'I': "03", 'p': "PM",
		'Z': "MST", 'z': "-0700", 'T': "15:04:05", 'F': "2006-01-02", 'D': "01/02/06", 'R': "15:04",
		'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'j': "002"}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch layout, ok := layouts[format[i]]; {
		case ok:
			b.WriteString(t.Format(layout))
		case format[i] == 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		case format[i] == '%', format[i] == 'n', format[i] == 't':
			b.WriteByte(map[byte]byte{'%': '%', 'n': '\n', 't': '\t'}[format[i]])
		default:
			b.WriteString(format[i-1 : i+1])
		}
	}
	return b.String()
}

// megabytes rounds bytes up to whole MiB.
func megabytes(bytes int64) int64 { return (max(bytes, 0) + 1<<20 - 1) >> 20 }

// Memory writes an amount in M or G, the larger that divides it.
func Memory(bytes int64) string {
	switch mb := megabytes(bytes); {
	case mb == 0:
		return "0"
	case mb%1024 == 0:
		return strconv.FormatInt(mb/1024, 10) + "G"
	default:
		return strconv.FormatInt(mb, 10) + "M"
	}
}

// visible replaces control characters, which would break lines and columns.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
}

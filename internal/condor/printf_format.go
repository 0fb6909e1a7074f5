package condor

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// conversion is a conversion of printf with its flags, width and precision.
var conversion = lazyregexp.New(`%([-+ #0]*)([0-9]{0,3})((?:\.[0-9]{0,3})?)(?:l{0,2})([diouxXeEfgGcsvVrT%])`)

// checkFormat refuses what is no format of printf with at most one conversion.
func checkFormat(format string) error {
	found := 0
	rest := conversion().ReplaceAllStringFunc(format, func(text string) string {
		if !strings.HasSuffix(text, "%") {
			found++
		}
		return ""
	})
	if strings.Contains(rest, "%") || found > 1 {
		return fmt.Errorf("-format %s: a format has one conversion of printf, as in %%d or %%-20s",
			strconv.Quote(format))
	}
	return nil
}

// formatValue writes a value by a format. HTCondor leaves out what is undefined, except
// for the conversions %v and %V, which name it.
func formatValue(format string, v classad.Value) string {
	text := unescape(format)
	undefined := false
	out := conversion().ReplaceAllStringFunc(text, func(part string) string {
		m := conversion().FindStringSubmatch(part)
		if m[4] == "%" {
			return "%"
		}
		piece, ok := convert(m[1]+m[2], m[3], m[4], v)
		undefined = undefined || !ok
		return piece
	})
	if undefined {
		return ""
	}
	return out
}

// convert writes a value by one conversion. It returns false if the value does not fit.
func convert(flags, precision, verb string, v classad.Value) (string, bool) {
	switch verb {
	case "d", "i", "u", "o", "x", "X", "c":
		n, ok := wholeNumber(v)
		if !ok {
			return "", false
		}
		if verb == "i" || verb == "u" {
			verb = "d"
		}
		return fmt.Sprintf("%"+flags+precision+verb, n), true
	case "e", "E", "f", "g", "G":
		f, ok := v.Number()
		if b, isBool := v.Bool(); isBool && b {
			f, ok = 1, true
		}
		if !ok {
			return "", false
		}
		return fmt.Sprintf("%"+flags+precision+verb, f), true
	}
	text, ok := v.Str()
	if !ok || verb == "V" || verb == "r" {
		text = valueText(v)
	}
	if verb == "s" && (v.IsUndefined() || v.IsError()) {
		return "", false
	}
	return fmt.Sprintf("%"+strings.Map(stringFlag, flags)+precision+"s", document.PrintableText(text)), true
}

// stringFlag drops the flags that printf does not know for texts.
func stringFlag(r rune) rune {
	if strings.ContainsRune("+ #", r) {
		return -1
	}
	return r
}

// wholeNumber returns a number or boolean as a whole number.
func wholeNumber(v classad.Value) (int64, bool) {
	if n, ok := v.Int(); ok {
		return n, true
	}
	if b, ok := v.Bool(); ok {
		if b {
			return 1, true
		}
		return 0, true
	}
	f, ok := v.Number()
	return int64(f), ok && math.Abs(f) < 1<<62
}

// unescape replaces \n, \t and the like, which a shell hands on as they are.
func unescape(format string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, `\"`, `"`, `\r`, "\r").Replace(format)
}

package ledger

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// SettingForm is the syntax of a setting's value.
type SettingForm string

// The forms.
const (
	FormSwitch     SettingForm = "on or off"
	FormCount      SettingForm = "number"
	FormNumber     SettingForm = "real number"
	FormDuration   SettingForm = "length of time"
	FormChoice     SettingForm = "choice"
	FormQueueName  SettingForm = "queue"
	FormExpression SettingForm = "expression"
	// names of capabilities that can be restricted, with commas between them
	FormCapabilities SettingForm = "capabilities"
	FormAttributes   SettingForm = "attributes" // names of attributes, with commas between them
	FormNetwork      SettingForm = "network"    // an address with the number of its bits that count, or empty
)

// SettingValue is a setting of the cell that an administrator has set.
type SettingValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (s SettingValue) name() string     { return s.Name }
func (s SettingValue) users() []string  { return nil }
func (s SettingValue) groups() []string { return nil }

// settingInfoOf returns the row of a setting.
func settingInfoOf(name string) (SettingInfo, bool) {
	for _, r := range Settings() {
		if r.Name == name {
			return r, true
		}
	}
	return SettingInfo{}, false
}

func (s SettingValue) check(l *Ledger) error {
	row, known := settingInfoOf(s.Name)
	if !known {
		var names []string
		for _, r := range Settings() {
			names = append(names, r.Name)
		}
		return fmt.Errorf("there is no such setting%s; roost cell settings lists them", suggestName(s.Name, names))
	}
	if len(s.Value) > maxReason {
		return fmt.Errorf("the value has %d characters, and %d is the most", len(s.Value), maxReason)
	}
	return row.check(l, s.Value)
}

func (r SettingInfo) check(l *Ledger, text string) error {
	switch r.Form {
	case FormSwitch:
		_, err := parseSwitch(text)
		return err
	case FormCount, FormNumber:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || r.Form == FormCount && v != math.Trunc(v) {
			return fmt.Errorf("%q is not a %s", text, r.Form)
		}
		return r.checkBounds(v, text)
	case FormDuration:
		d, err := roost.ParseDuration(text)
		if err != nil {
			return err
		}
		return r.checkBounds(d.Seconds(), text)
	case FormChoice:
		for _, c := range r.Choices {
			if c == text {
				return nil
			}
		}
		return fmt.Errorf("%q is not one of %s", text, strings.Join(r.Choices, ", "))
	case FormQueueName:
		if _, ok := l.Queue(text); !ok && text != "" {
			return fmt.Errorf("there is no queue %q; make it first: roost queue set %s", text, text)
		}
		return nil
	case FormCapabilities:
		return checkRestricted(text)
	case FormAttributes:
		return checkAttributes(text)
	case FormNetwork:
		return checkNetwork(text)
	}
	return checkPolicy(text)
}

// checkNetwork checks a network, in the form of RFC 4632.
func checkNetwork(text string) error {
	if text == "" {
		return nil
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a network: write it as in 10.1.0.0/16 or fd00:1::/64", text)
	case prefix != prefix.Masked():
		return fmt.Errorf("%s is an address in a network: the network is %v", text, prefix.Masked())
	}
	return nil
}

// maxAttributes is how many attributes a setting may name.
const maxAttributes = 3

// attributeName is how attributes are named in ads, short enough for a message.
var attributeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// checkAttributes checks a list of attributes, each of which may occur once.
func checkAttributes(text string) error {
	if text == "" {
		return nil
	}
	names := strings.Split(text, ",")
	if len(names) > maxAttributes {
		return fmt.Errorf("%q has %d names, and %d is the most", text, len(names), maxAttributes)
	}
	seen := map[string]bool{}
	for _, name := range names {
		switch folded := strings.ToLower(name); {
		case !attributeName.MatchString(name):
			return fmt.Errorf("%q is not the name of an attribute: write names with commas between them, "+
				"as in Power,Rack", name)
		case seen[folded]:
			return fmt.Errorf("%q is named twice", name)
		default:
			seen[folded] = true
		}
	}
	return nil
}

// SettingAttributes returns the names of a setting that is a list of attributes.
func (l *Ledger) SettingAttributes(name string) []string {
	if text := l.SettingText(name); text != "" {
		return strings.Split(text, ",")
	}
	return nil
}

func (r SettingInfo) checkBounds(v float64, text string) error {
	if v >= r.Min && v <= r.Max {
		return nil
	}
	least, most := strconv.FormatFloat(r.Min, 'f', -1, 64), strconv.FormatFloat(r.Max, 'f', -1, 64)
	if r.Form == FormDuration {
		least, most = (time.Duration(r.Min) * time.Second).String(), (time.Duration(r.Max) * time.Second).String()
	}
	return fmt.Errorf("%s is not between %s and %s", text, least, most)
}

func parseSwitch(text string) (bool, error) {
	switch text {
	case "on", "true", "yes":
		return true, nil
	case "off", "false", "no":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither on nor off", text)
}

// SettingText returns the value of a setting, or its default. It panics for a name that
// is not in the table, which is a bug.
func (l *Ledger) SettingText(name string) string {
	row, known := settingInfoOf(name)
	if !known {
		panic("ledger: no setting is called " + name)
	}
	if s, ok := objectNamed[SettingValue](l, KindSetting, name); ok {
		return s.Value
	}
	return row.Default
}

// SettingOn returns the value of a setting that is on or off.
func (l *Ledger) SettingOn(name string) bool {
	on, _ := parseSwitch(l.SettingText(name))
	return on
}

// SettingNumber returns the value of a setting that is a number.
func (l *Ledger) SettingNumber(name string) float64 {
	v, _ := strconv.ParseFloat(l.SettingText(name), 64)
	return v
}

// SettingDuration returns the value of a setting that is a duration.
func (l *Ledger) SettingDuration(name string) time.Duration {
	d, _ := roost.ParseDuration(l.SettingText(name))
	return d
}

// SettingExpression returns the value of a setting that is an expression. An expression
// that an older version accepted and this version cannot parse becomes ERROR, which
// denies.
func (l *Ledger) SettingExpression(name string) classad.Expr {
	e, err := classad.ParseExpr(l.SettingText(name))
	if err != nil {
		e, _ = classad.ParseExpr("error")
	}
	return e
}

// errUnreadableSetting is the error for an expression with an unknown attribute.
var errUnreadableSetting = errors.New("no such attribute")

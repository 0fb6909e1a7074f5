package ledger

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Form says what a setting's text is read as.
type Form string

// The forms.
const (
	Switch     Form = "on or off"
	Count      Form = "number"
	Number     Form = "real number"
	Duration   Form = "length of time"
	Choice     Form = "choice"
	QueueName  Form = "queue"
	Expression Form = "expression"
)

// Setting is a setting of the cell that has been set.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (s Setting) name() string     { return s.Name }
func (s Setting) users() []string  { return nil }
func (s Setting) groups() []string { return nil }

// rowOf finds a setting in the table.
func rowOf(name string) (Row, bool) {
	for _, r := range Settings() {
		if r.Name == name {
			return r, true
		}
	}
	return Row{}, false
}

func (s Setting) check(l *Ledger) error {
	row, known := rowOf(s.Name)
	if !known {
		var names []string
		for _, r := range Settings() {
			names = append(names, r.Name)
		}
		return fmt.Errorf("there is no such setting%s; roost cell settings lists them", suggest(s.Name, names))
	}
	if len(s.Value) > maxReason {
		return fmt.Errorf("the value has %d characters, and %d is the most", len(s.Value), maxReason)
	}
	return row.check(l, s.Value)
}

func (r Row) check(l *Ledger, text string) error {
	switch r.Form {
	case Switch:
		_, err := parseSwitch(text)
		return err
	case Count, Number:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || r.Form == Count && v != math.Trunc(v) {
			return fmt.Errorf("%q is not a %s", text, r.Form)
		}
		return r.within(v, text)
	case Duration:
		d, err := roost.ParseDuration(text)
		if err != nil {
			return err
		}
		return r.within(d.Seconds(), text)
	case Choice:
		for _, c := range r.Choices {
			if c == text {
				return nil
			}
		}
		return fmt.Errorf("%q is not one of %s", text, strings.Join(r.Choices, ", "))
	case QueueName:
		if _, ok := l.Queue(text); !ok && text != "" {
			return fmt.Errorf("there is no queue %q; make it first: roost queue set %s", text, text)
		}
		return nil
	}
	return checkPolicy(text)
}

func (r Row) within(v float64, text string) error {
	if v >= r.Least && v <= r.Most {
		return nil
	}
	least, most := strconv.FormatFloat(r.Least, 'f', -1, 64), strconv.FormatFloat(r.Most, 'f', -1, 64)
	if r.Form == Duration {
		least, most = (time.Duration(r.Least) * time.Second).String(), (time.Duration(r.Most) * time.Second).String()
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

// Text is a setting as it is set, or its default. A name that is not in the table is a bug and panics.
func (l *Ledger) Text(name string) string {
	row, known := rowOf(name)
	if !known {
		panic("ledger: no setting is called " + name)
	}
	if s, ok := one[Setting](l, KindSetting, name); ok {
		return s.Value
	}
	return row.Default
}

// On is a setting that is on or off.
func (l *Ledger) On(name string) bool {
	on, _ := parseSwitch(l.Text(name))
	return on
}

// Number is a setting that is a number.
func (l *Ledger) Number(name string) float64 {
	v, _ := strconv.ParseFloat(l.Text(name), 64)
	return v
}

// Duration is a setting that is a length of time.
func (l *Ledger) Duration(name string) time.Duration {
	d, _ := roost.ParseDuration(l.Text(name))
	return d
}

// Expression is a setting that is an expression. One that an older version let pass and this one cannot read is ERROR, which denies.
func (l *Ledger) Expression(name string) classad.Expr {
	e, err := classad.ParseExpr(l.Text(name))
	if err != nil {
		e, _ = classad.ParseExpr("error")
	}
	return e
}

// errNonsense is what an expression gets that has no value when it is tried.
var errNonsense = errors.New("no such attribute")

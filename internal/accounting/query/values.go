package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// Units is an amount of charge. Its JSON is a number of units with up to six decimals.
type Units accounting.MicroUnits

// String returns the number in units.
func (u Units) String() string { return accounting.MicroUnits(u).String() }

// MarshalJSON implements json.Marshaler.
func (u Units) MarshalJSON() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (u *Units) UnmarshalJSON(text []byte) error {
	n, err := accounting.ParseMicroUnits(string(text))
	*u = Units(n)
	return err
}

// Factor is a factor in thousandths. Its JSON is a number with up to three decimals.
type Factor int64

const factorDigits = 3

// String returns the number.
func (f Factor) String() string { return accounting.FormatDecimal(int64(f), factorDigits) }

// ParseFactor reads the form of String.
func ParseFactor(text string) (Factor, error) {
	n, err := accounting.ParseDecimal(text, factorDigits)
	if err != nil {
		return 0, fmt.Errorf("factor %w", err)
	}
	return Factor(n), nil
}

// MarshalJSON implements json.Marshaler.
func (f Factor) MarshalJSON() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (f *Factor) UnmarshalJSON(text []byte) (err error) {
	*f, err = ParseFactor(string(text))
	return err
}

// Time is a time. Its JSON is text in RFC 3339 form in UTC, empty for none.
type Time accounting.Millis

const timeLayout = "2006-01-02T15:04:05.000Z"

// String returns the time, or nothing for none.
func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return accounting.Millis(t).Time().Format(timeLayout)
}

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *Time) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil || s == "" {
		*t = 0
		return err
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return fmt.Errorf("time %.40q: %w: write it as 2026-03-01T00:00:00Z", s, roost.Invalid)
	}
	*t = Time(accounting.MillisOf(at))
	return nil
}

// Month is a month. Its JSON is text as "2026-03".
type Month accounting.Month

// String returns the month.
func (m Month) String() string { return accounting.Month(m).String() }

// MarshalJSON implements json.Marshaler.
func (m Month) MarshalJSON() ([]byte, error) { return json.Marshal(m.String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (m *Month) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	month, err := accounting.ParseMonth(s)
	*m = Month(month)
	return err
}

// Payer is who is charged. Exactly one of the names is set.
type Payer struct {
	Project string `json:"project,omitempty"`
	Group   string `json:"group,omitempty"`
	User    string `json:"user,omitempty"`
}

func payerOf(p accounting.Payer) Payer {
	return Payer{Project: p.Project, Group: p.Group, User: p.Owner}
}

func (p Payer) payer() accounting.Payer {
	return accounting.Payer{Project: p.Project, Group: p.Group, Owner: p.User}
}

// Check returns an error unless exactly one name is set.
func (p Payer) Check() error {
	n := 0
	for _, name := range []string{p.Project, p.Group, p.User} {
		if name != "" {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("payer: %w: name a project, a group or a user", roost.Invalid)
	}
	return nil
}

// String returns the payer for people, as "project ocean".
func (p Payer) String() string {
	switch {
	case p.Project != "":
		return "project " + p.Project
	case p.Group != "":
		return "group " + p.Group
	}
	return "user " + p.User
}

// decode reads one JSON value that has no members but those of into.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", roost.Invalid, err)
	}
	if d.More() {
		return fmt.Errorf("%w: there is more than one value", roost.Invalid)
	}
	return nil
}

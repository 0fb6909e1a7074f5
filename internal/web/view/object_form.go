package view

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// ObjectForm is the form for the objects of a kind. The negotiators check what it says,
// as they do with the command.
type ObjectForm struct {
	Path   string
	Fields []ObjectField
	Fresh  bool // the user logged in less than 15 minutes ago, as changes need it
}

// ObjectField is one field of a form. An empty one leaves the object as it is there.
type ObjectField struct {
	Name     string // of the member, with a dot before one of an object: "most.cpus"
	Label    string
	Kind     FieldKind
	Required bool
	Choices  []string
	Hint     string
}

// FieldKind is what a field of a form takes.
type FieldKind string

// The kinds.
const (
	textField   FieldKind = "text"
	numberField FieldKind = "number"
	sizeField   FieldKind = "size" // bytes, as 4GiB
	yesNoField  FieldKind = "yes-no"
	timeField   FieldKind = "time" // as 2026-03-01T12:00:00Z
	choiceField FieldKind = "choice"
	listField   FieldKind = "list" // names with blanks between them
)

// formOf returns the form for a kind.
func formOf(kind ledger.ObjectKind) []ObjectField {
	band := ObjectField{Name: "band", Label: "Band", Kind: choiceField, Choices: roost.BandNames()}
	name := ObjectField{Name: "name", Label: "Name", Kind: textField, Required: true}
	reason := ObjectField{Name: "reason", Label: "Reason", Kind: textField}
	period := []ObjectField{{Name: "from", Label: "From", Kind: timeField, Hint: "now"},
		{Name: "until", Label: "Until", Kind: timeField, Hint: "no end"}}
	amounts := func(of string) []ObjectField {
		return []ObjectField{{Name: of + ".cpus", Label: "Cores", Kind: numberField},
			{Name: of + ".memory_bytes", Label: "Memory", Kind: sizeField, Hint: "64GiB"},
			{Name: of + ".disk_bytes", Label: "Disk", Kind: sizeField, Hint: "1TiB"},
			{Name: of + ".gpus", Label: "GPUs", Kind: numberField},
			{Name: of + ".tasks", Label: "Tasks", Kind: numberField}}
	}
	var fields []ObjectField
	switch kind {
	case ledger.KindQuota:
		band.Required = true
		fields = append(fields, ObjectField{Name: "user", Label: "User", Kind: textField, Hint: ledger.EachUser},
			ObjectField{Name: "group", Label: "or group", Kind: textField}, band)
		fields = append(append(fields, amounts("most")...), period...)
	case ledger.KindGroup:
		fields = append(fields, name, ObjectField{Name: "cores", Label: "Cores", Kind: numberField},
			ObjectField{Name: "fraction", Label: "or fraction of the parent", Kind: numberField, Hint: "0.25"},
			ObjectField{Name: "accept_surplus", Label: "May use what others leave", Kind: yesNoField})
	case ledger.KindQueue:
		fields = append(fields, name, band, ObjectField{Name: "enabled", Label: "Accepts jobs", Kind: yesNoField},
			ObjectField{Name: "started", Label: "Starts jobs", Kind: yesNoField},
			ObjectField{Name: "priority", Label: "Priority", Kind: numberField})
	case ledger.KindLimit:
		fields = append(fields, name,
			ObjectField{Name: "count", Label: "Tasks at once", Kind: numberField, Required: true})
	case ledger.KindDrain:
		fields = append(fields, ObjectField{Name: "node", Label: "Node", Kind: textField, Required: true}, reason,
			ObjectField{Name: "evict", Label: "Tasks of services go elsewhere", Kind: yesNoField},
			ObjectField{Name: "deadline", Label: "All tasks end", Kind: timeField, Hint: "never"})
		fields = append(fields, period...)
	case ledger.KindReservation:
		fields = append(fields, name, ObjectField{Name: "users", Label: "Users", Kind: listField},
			ObjectField{Name: "groups", Label: "Groups", Kind: listField},
			ObjectField{Name: "nodes", Label: "Nodes", Kind: listField})
		fields = append(append(fields, amounts("amount")...), reason)
		fields = append(fields, period...)
	case ledger.KindAdmin:
		fields = append(fields,
			ObjectField{Name: "who", Label: "User", Kind: textField, Required: true, Hint: "ann@node"},
			ObjectField{Name: "capabilities", Label: "Capabilities", Kind: listField, Required: true})
	}
	return fields
}

// objectOf makes the object of a form that was sent.
func objectOf(fields []ObjectField, value func(string) string) (json.RawMessage, error) {
	object := map[string]any{}
	for _, f := range fields {
		v, err := f.valueOf(strings.TrimSpace(value(f.Name)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", f.Label, roost.Invalid, err)
		}
		if v == nil {
			continue
		}
		into := object
		outer, inner, nested := strings.Cut(f.Name, ".")
		if nested {
			if into, _ = object[outer].(map[string]any); into == nil {
				into = map[string]any{}
				object[outer] = into
			}
			outer = inner
		}
		into[outer] = v
	}
	return json.Marshal(object)
}

// valueOf returns the value of a field; nil: it says nothing.
func (f ObjectField) valueOf(text string) (any, error) {
	if text == "" {
		if f.Required {
			return nil, fmt.Errorf("it is missing")
		}
		return nil, nil
	}
	switch f.Kind {
	case yesNoField:
		if text != "yes" && text != "no" {
			return nil, fmt.Errorf("%.40q is neither yes nor no", text)
		}
		return text == "yes", nil
	case numberField:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n != n || n > 1e15 || n < -1e15 {
			return nil, fmt.Errorf("%.40q is no number", text)
		}
		return json.Number(strconv.FormatFloat(n, 'f', -1, 64)), nil
	case sizeField:
		n, err := roost.ParseBytes(text)
		return n, err
	case timeField:
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, fmt.Errorf("%.40q is no time as 2026-03-01T12:00:00Z", text)
		}
		return t, nil
	case listField:
		return strings.Fields(strings.ReplaceAll(text, ",", " ")), nil
	}
	return text, nil
}

// SetByForm makes or changes an object of the kind by its form.
func (o ObjectRoute) SetByForm(c *route.Call) error {
	var object json.RawMessage
	var invalid error
	err := c.Decode(nil, func(value func(string) string) { object, invalid = objectOf(formOf(o.Kind), value) })
	if err == nil {
		err = invalid
	}
	if err != nil {
		return err
	}
	c.Note("object", object)
	r := &wire.CellRequest{Verb: string(ledger.VerbSet), Kind: string(o.Kind), Object: object}
	if err := changeObject(c, r); err != nil {
		return err
	}
	return c.Redirect("/" + o.Path)
}

// RemoveByForm removes the object of the kind that the button of its row names.
func (o ObjectRoute) RemoveByForm(c *route.Call) error {
	var name string
	if err := c.Decode(nil, func(value func(string) string) { name = value("name") }); err != nil {
		return err
	}
	if name == "" {
		return fmt.Errorf("name: %w: it is not said what to remove", roost.Invalid)
	}
	c.Note("name", name)
	r := &wire.CellRequest{Verb: string(ledger.VerbRemove), Kind: string(o.Kind), Name: name}
	if err := changeObject(c, r); err != nil {
		return err
	}
	return c.Redirect("/" + o.Path)
}

// changeCell has the negotiators change what they keep, for a program.
func changeCell(c *route.Call, r *wire.CellRequest) error {
	if err := changeObject(c, r); err != nil {
		return err
	}
	c.Writer.WriteHeader(http.StatusNoContent)
	return nil
}

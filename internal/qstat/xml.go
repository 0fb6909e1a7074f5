package qstat

import (
	"encoding/xml"
	"io"
	"strings"
	"unicode/utf8"
)

// tree is the format of Torque's qstat -x and pbsnodes -x: one document, in one line behind its declaration.
type tree struct {
	w    io.Writer
	e    *xml.Encoder
	open bool
	bare bool // without a declaration
	must bool // also of nothing there is a document
}

// NewXML returns what prints one XML document of all objects, as Torque does. Of nothing it prints nothing, unless it must.
func NewXML(w io.Writer, must bool) Full { return &tree{w: w, e: xml.NewEncoder(w), must: must} }

// NewNodeXML is NewXML for nodes, of which the document has no declaration.
func NewNodeXML(w io.Writer, must bool) Full {
	return &tree{w: w, e: xml.NewEncoder(w), must: must, bare: true}
}

// The element that stands for an object of each kind, and the one in it that names it.
func (k Kind) elements() (object, name string) {
	return [...]string{"Job", "Queue", "Server", "Node"}[k], [...]string{"Job_Id", "name", "name", "name"}[k]
}

func start(name string) xml.StartElement { return xml.StartElement{Name: xml.Name{Local: name}} }

// begin writes what stands before the first object.
func (t *tree) begin() error {
	if t.open {
		return nil
	}
	if t.open = true; t.bare {
		return t.e.EncodeToken(start("Data"))
	}
	if _, err := io.WriteString(t.w, "<?xml version=\"1.0\"?>\n"); err != nil {
		return err
	}
	return t.e.EncodeToken(start("Data"))
}

func (t *tree) Print(o *Object) error {
	if err := t.begin(); err != nil {
		return err
	}
	object, name := o.Kind.elements()
	err := t.e.EncodeToken(start(object))
	if err == nil {
		err = t.e.EncodeElement(o.Name, start(name))
	}
	for i := 0; err == nil && i < len(o.Attributes); i++ {
		a := &o.Attributes[i]
		if a.Resource == "" {
			err = t.e.EncodeElement(elementText(a), start(a.Name))
			continue
		}
		last := i
		for last+1 < len(o.Attributes) && o.Attributes[last+1].Name == a.Name {
			last++
		}
		err = t.resources(o.Attributes[i : last+1])
		i = last
	}
	if err == nil {
		err = t.e.EncodeToken(start(object).End())
	}
	return err
}

// elementText is the value of an attribute without the control characters above ASCII, which XML may hold; it replaces those below by itself.
func elementText(a *Attribute) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x7f && r < 0xa0 {
			return utf8.RuneError
		}
		return r
	}, a.Text())
}

// resources writes attributes of one name, a resource each, into one element.
func (t *tree) resources(list []Attribute) error {
	err := t.e.EncodeToken(start(list[0].Name))
	for i := 0; err == nil && i < len(list); i++ {
		err = t.e.EncodeElement(elementText(&list[i]), start(list[i].Resource))
	}
	if err == nil {
		err = t.e.EncodeToken(start(list[0].Name).End())
	}
	return err
}

func (t *tree) Close() error {
	if !t.open && !t.must {
		return nil
	}
	err := t.begin()
	if err == nil {
		err = t.e.EncodeToken(start("Data").End())
	}
	if err == nil {
		err = t.e.Flush()
	}
	if err == nil {
		_, err = io.WriteString(t.w, "\n")
	}
	return err
}

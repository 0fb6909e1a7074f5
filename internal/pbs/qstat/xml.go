package qstat

import (
	"encoding/xml"
	"io"
	"strings"
	"unicode/utf8"
)

// xmlPrinter is the format of Torque's qstat -x and pbsnodes -x: one document in one line
// after its declaration.
type xmlPrinter struct {
	w               io.Writer
	encoder         *xml.Encoder
	hasObject       bool
	omitDeclaration bool // no XML declaration
	alwaysDocument  bool // print a document even without objects
}

// NewXML returns a printer of one XML document, as Torque prints it. Without objects it
// prints nothing unless must is set.
func NewXML(w io.Writer, must bool) FullPrinter {
	return &xmlPrinter{w: w, encoder: xml.NewEncoder(w), alwaysDocument: must}
}

// NewNodeXML returns NewXML for nodes, without an XML declaration.
func NewNodeXML(w io.Writer, must bool) FullPrinter {
	return &xmlPrinter{w: w, encoder: xml.NewEncoder(w), alwaysDocument: must, omitDeclaration: true}
}

// elementNames returns the XML element of an object of the kind, and the one with its
// name.
func (k ObjectKind) elementNames() (object, name string) {
	return [...]string{"Job", "Queue", "Server", "Node"}[k], [...]string{"Job_Id", "name", "name", "name"}[k]
}

func startElement(name string) xml.StartElement { return xml.StartElement{Name: xml.Name{Local: name}} }

// beginDocument writes the start of the document before the first object.
func (t *xmlPrinter) beginDocument() error {
	if t.hasObject {
		return nil
	}
	if t.hasObject = true; t.omitDeclaration {
		return t.encoder.EncodeToken(startElement("Data"))
	}
	if _, err := io.WriteString(t.w, "<?xml version=\"1.0\"?>\n"); err != nil {
		return err
	}
	return t.encoder.EncodeToken(startElement("Data"))
}

func (t *xmlPrinter) Print(o *Object) error {
	if err := t.beginDocument(); err != nil {
		return err
	}
	object, name := o.Kind.elementNames()
	err := t.encoder.EncodeToken(startElement(object))
	if err == nil {
		err = t.encoder.EncodeElement(o.Name, startElement(name))
	}
	for i := 0; err == nil && i < len(o.Attributes); i++ {
		a := &o.Attributes[i]
		if a.Resource == "" {
			err = t.encoder.EncodeElement(elementText(a), startElement(a.Name))
			continue
		}
		last := i
		for last+1 < len(o.Attributes) && o.Attributes[last+1].Name == a.Name {
			last++
		}
		err = t.writeResources(o.Attributes[i : last+1])
		i = last
	}
	if err == nil {
		err = t.encoder.EncodeToken(startElement(object).End())
	}
	return err
}

// elementText returns the value of an attribute without the control characters above
// ASCII, which XML permits. The encoder replaces those of ASCII.
func elementText(a *ObjectAttribute) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x7f && r < 0xa0 {
			return utf8.RuneError
		}
		return r
	}, a.Text())
}

// writeResources writes the attributes of one name as resources in one element.
func (t *xmlPrinter) writeResources(list []ObjectAttribute) error {
	err := t.encoder.EncodeToken(startElement(list[0].Name))
	for i := 0; err == nil && i < len(list); i++ {
		err = t.encoder.EncodeElement(elementText(&list[i]), startElement(list[i].Resource))
	}
	if err == nil {
		err = t.encoder.EncodeToken(startElement(list[0].Name).End())
	}
	return err
}

func (t *xmlPrinter) Close() error {
	if !t.hasObject && !t.alwaysDocument {
		return nil
	}
	err := t.beginDocument()
	if err == nil {
		err = t.encoder.EncodeToken(startElement("Data").End())
	}
	if err == nil {
		err = t.encoder.Flush()
	}
	if err == nil {
		_, err = io.WriteString(t.w, "\n")
	}
	return err
}

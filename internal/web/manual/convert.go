package manual

import (
	"fmt"
	"html"
	"html/template"
	"strings"

	"github.com/roost-batch/roost"
)

// pageWriter converts one page from man(7) to HTML.
type pageWriter struct {
	manual   *Manual
	page     *Page
	lines    []string
	next     int // the line to read
	body     *strings.Builder
	levels   []level // RS opens one, and RE closes it
	verbatim bool    // between nf and fi

	heading string
	anchor  string // of the last heading or tag
	tag     string
	found   strings.Builder // text since the anchor, for the search
	anchors map[string]bool
}

// level is what is open at one depth of indentation.
type level struct {
	list      string // "dl", "ul" or ""
	paragraph bool
}

// convertPage fills in a page from its source.
func (m *Manual) convertPage(p *Page, source string) error {
	w := &pageWriter{manual: m, page: p, lines: strings.Split(strings.TrimRight(source, "\n"), "\n"),
		body: &strings.Builder{}, levels: make([]level, 1), anchors: map[string]bool{}}
	for w.next < len(w.lines) {
		line := w.lines[w.next]
		w.next++
		if err := w.convertLine(line); err != nil {
			return fmt.Errorf("line %d: %w", w.next, err)
		}
	}
	if w.verbatim {
		return fmt.Errorf("%w: .nf without .fi", roost.Invalid)
	}
	w.closeLevels(1)
	w.closeList()
	w.endPassage()
	p.Body = template.HTML(w.body.String())
	return nil
}

// convertLine converts a line of text or a macro.
func (w *pageWriter) convertLine(line string) error {
	name, rest, ok := cutMacro(line)
	if !ok {
		spans, err := parseSpans(line, 'R')
		if err == nil {
			w.writeText(spans)
		}
		return err
	}
	if w.verbatim && isBlockMacro(name) {
		return fmt.Errorf("%w: .%s between .nf and .fi", roost.Invalid, name)
	}
	args := splitArguments(rest)
	switch name {
	case "", `\"`, "TH", "nh", "ad", "ta":
		return nil
	case "SH", "SS":
		return w.writeHeading(strings.Join(args, " "), name == "SS")
	case "PP":
		w.closeList()
		return nil
	case "TP":
		return w.writeTag()
	case "TQ":
		return w.writeTerm()
	case "IP":
		return w.writeIndented(args)
	case "RS":
		w.openLevel()
		return nil
	case "RE":
		return w.closeLevel()
	case "nf", "EX":
		w.closeParagraph()
		w.body.WriteString(`<pre tabindex="0">`)
		w.verbatim = true
		return nil
	case "fi", "EE":
		if !w.verbatim {
			return fmt.Errorf("%w: .%s without .nf", roost.Invalid, name)
		}
		w.body.WriteString("</pre>\n")
		w.verbatim = false
		return nil
	case "br":
		w.body.WriteString("<br>")
		return nil
	case "TS":
		end := w.next
		for end < len(w.lines) && w.lines[end] != ".TE" {
			end++
		}
		table := w.lines[w.next:end]
		w.next = min(end+1, len(w.lines))
		return w.writeTable(table)
	}
	spans, err := lineSpans(line)
	if err == nil {
		w.writeText(spans)
	}
	return err
}

// isBlockMacro reports whether a macro begins another block, which text without filling
// cannot have.
func isBlockMacro(name string) bool {
	switch name {
	case "SH", "SS", "PP", "TP", "TQ", "IP", "nf", "EX", "TS":
		return true
	}
	return false
}

// openLevel indents what follows. Text without filling goes on inside.
func (w *pageWriter) openLevel() {
	w.closeParagraph()
	if w.verbatim {
		w.body.WriteString("</pre>")
	}
	w.body.WriteString(`<div class="indent">`)
	if w.verbatim {
		w.body.WriteString(`<pre tabindex="0">`)
	}
	w.levels = append(w.levels, level{})
}

// closeLevel ends what openLevel began.
func (w *pageWriter) closeLevel() error {
	if len(w.levels) == 1 {
		return fmt.Errorf("%w: RE without RS", roost.Invalid)
	}
	if w.verbatim {
		w.body.WriteString("</pre>")
	}
	w.closeLevels(len(w.levels) - 1)
	if w.verbatim {
		w.body.WriteString(`<pre tabindex="0">`)
	}
	return nil
}

// cutMacro splits a line that begins with a full stop or an apostrophe.
func cutMacro(line string) (name, rest string, ok bool) {
	if line == "" || line[0] != '.' && line[0] != '\'' {
		return "", "", false
	}
	name, rest, _ = strings.Cut(line[1:], " ")
	return name, rest, true
}

// lineSpans reads a line of text, or a macro of fonts.
func lineSpans(line string) ([]span, error) {
	name, rest, ok := cutMacro(line)
	if !ok {
		return parseSpans(line, 'R')
	}
	switch args := splitArguments(rest); name {
	case "B", "I":
		return joinSpans(name[0], args)
	case "BR", "RB", "BI", "IB", "IR", "RI":
		return fontArguments(name, args)
	}
	return nil, fmt.Errorf("%w: unknown macro .%s", roost.Invalid, name)
}

func (w *pageWriter) top() *level { return &w.levels[len(w.levels)-1] }

// writeText adds a line to the present paragraph, or begins one.
func (w *pageWriter) writeText(spans []span) {
	text := plainText(spans)
	w.found.WriteString(text + " ")
	if w.heading == "NAME" {
		if _, summary, ok := strings.Cut(text, " - "); ok {
			w.page.Summary = summary
		}
	}
	if !w.verbatim && !w.top().paragraph {
		if text == "" {
			return
		}
		w.body.WriteString("<p>")
		w.top().paragraph = true
	}
	w.manual.writeSpans(w.body, spans)
	w.body.WriteByte('\n')
}

func (w *pageWriter) closeParagraph() {
	if w.top().paragraph {
		w.body.WriteString("</p>\n")
		w.top().paragraph = false
	}
}

// closeList ends the list of the present level with its last item.
func (w *pageWriter) closeList() {
	w.closeParagraph()
	switch w.top().list {
	case "dl":
		w.body.WriteString("</dd></dl>\n")
	case "ul":
		w.body.WriteString("</li></ul>\n")
	}
	w.top().list = ""
}

// closeLevels ends the levels from a depth on.
func (w *pageWriter) closeLevels(depth int) {
	for len(w.levels) > depth {
		w.closeList()
		w.body.WriteString("</div>\n")
		w.levels = w.levels[:len(w.levels)-1]
	}
}

func (w *pageWriter) writeHeading(text string, sub bool) error {
	spans, err := parseSpans(text, 'R')
	if err != nil {
		return err
	}
	w.closeLevels(1)
	w.closeList()
	w.endPassage()
	w.heading, w.tag = plainText(spans), ""
	w.anchor = w.newAnchor(w.heading)
	w.page.Headings = append(w.page.Headings, Heading{w.heading, w.anchor, sub})
	element := "h2"
	if sub {
		element = "h3"
	}
	fmt.Fprintf(w.body, "<%s id=\"%s\">", element, w.anchor)
	w.manual.writeSpans(w.body, spans)
	fmt.Fprintf(w.body, "</%s>\n", element)
	return nil
}

// writeTag begins an item of a list whose tag is on the next line.
func (w *pageWriter) writeTag() error {
	w.beginItem("dl")
	if w.next == len(w.lines) {
		return fmt.Errorf("%w: TP at the end", roost.Invalid)
	}
	spans, err := lineSpans(w.lines[w.next])
	w.next++
	if err == nil {
		w.writeItemTag(spans)
	}
	return err
}

// writeTerm adds a second tag to an item that has no text yet.
func (w *pageWriter) writeTerm() error {
	if w.next == len(w.lines) || w.top().list != "dl" {
		return fmt.Errorf("%w: TQ without TP", roost.Invalid)
	}
	spans, err := lineSpans(w.lines[w.next])
	w.next++
	if err != nil {
		return err
	}
	body, ok := strings.CutSuffix(w.body.String(), "<dd>")
	if !ok {
		return fmt.Errorf("%w: TQ after a text", roost.Invalid)
	}
	w.body.Reset()
	w.body.WriteString(body)
	w.writeItemTag(spans)
	return nil
}

// writeIndented begins an item with a tag of its own, or another paragraph of the present
// one.
func (w *pageWriter) writeIndented(args []string) error {
	switch {
	case len(args) == 0:
		w.closeParagraph()
		return nil
	case args[0] == `\(bu`:
		w.beginItem("ul")
		w.body.WriteString("<li>")
		return nil
	}
	spans, err := parseSpans(args[0], 'R')
	if err == nil {
		w.beginItem("dl")
		w.writeItemTag(spans)
	}
	return err
}

// beginItem ends the item before, and begins a list of the kind if none is open.
func (w *pageWriter) beginItem(list string) {
	w.endPassage()
	w.closeParagraph()
	switch {
	case w.top().list != list:
		w.closeList()
		w.body.WriteString("<" + list + ">\n")
		w.top().list = list
	case list == "dl":
		w.body.WriteString("</dd>\n")
	default:
		w.body.WriteString("</li>\n")
	}
}

func (w *pageWriter) writeItemTag(spans []span) {
	text := plainText(spans)
	w.tag, w.anchor = text, w.newAnchor(text)
	fmt.Fprintf(w.body, "<dt id=\"%s\">", html.EscapeString(w.anchor))
	w.manual.writeSpans(w.body, spans)
	w.body.WriteString("</dt><dd>")
}

// endPassage gives the search what was written since the last anchor.
func (w *pageWriter) endPassage() {
	if text := strings.TrimSpace(w.found.String()); text != "" || w.tag != "" {
		w.page.passages = append(w.page.passages, passage{w.heading, w.anchor, w.tag, text})
	}
	w.found.Reset()
}

// newAnchor makes an anchor of the letters and digits of a text. It adds a number if the
// page has that anchor already.
func (w *pageWriter) newAnchor(text string) string {
	slug := strings.Trim(strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_')
	}), "-"), "-")
	if slug == "" {
		slug = "item"
	}
	anchor := slug
	for n := 2; w.anchors[anchor]; n++ {
		anchor = fmt.Sprintf("%s-%d", slug, n)
	}
	w.anchors[anchor] = true
	return anchor
}

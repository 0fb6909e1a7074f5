package frame

import (
	"encoding/json"
	"io"

	"github.com/roost-batch/roost/internal/document"
)

// JSONDocument is the outermost object of what a command prints.
type JSONDocument map[string]any

// PrintJSON prints one document on several lines.
func PrintJSON(w io.Writer, d JSONDocument) error {
	d["v"] = document.Version
	return PrintDocument(w, d)
}

// PrintDocument prints a document of package document, or a JSONDocument, on several
// lines.
func PrintDocument(w io.Writer, d any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

// PrintLine prints one document of a stream, on one line.
func PrintLine(w io.Writer, d JSONDocument) error {
	d["v"] = document.Version
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(d)
}

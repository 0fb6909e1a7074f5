package frame

import (
	"encoding/json"
	"io"
)

// JSONDocument is the outermost object of what a command prints.
type JSONDocument map[string]any

// PrintJSON prints one document on several lines.
func PrintJSON(w io.Writer, d JSONDocument) error {
	d["v"] = recordVersion
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

// PrintLine prints one document of a stream, on one line.
func PrintLine(w io.Writer, d JSONDocument) error {
	d["v"] = recordVersion
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(d)
}

// recordVersion is the version of the records that --json prints. Fields are only ever
// added; version rises if one had to change its meaning. roost-json(7) describes them.
const recordVersion = 1

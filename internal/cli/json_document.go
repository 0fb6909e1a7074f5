package cli

import (
	"encoding/json"
	"io"
)

// jsonDocument is the outermost object of what a command prints.
type jsonDocument map[string]any

// printJSON prints one document on several lines.
func printJSON(w io.Writer, d jsonDocument) error {
	d["v"] = recordVersion
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

// printLine prints one document of a stream, on one line.
func printLine(w io.Writer, d jsonDocument) error {
	d["v"] = recordVersion
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(d)
}

// The records that --json prints. Fields are only ever added; version rises if one had to
// change its meaning. roost-json(7) describes them.
const recordVersion = 1

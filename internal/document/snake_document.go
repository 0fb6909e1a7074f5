package document

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode"
)

// SnakeDocument returns a value as a document whose names are as in roost-json(7).
// HeldCPU is held_cpu. The id of a source is text.
func SnakeDocument(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var decoded any
	if err := d.Decode(&decoded); err != nil {
		return nil, err
	}
	return renamed(decoded), nil
}

func renamed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			if source, is := sourceText(name, member); is {
				member = source
			}
			out[SnakeCase(name)] = renamed(member)
		}
		return out
	case []any:
		for i := range v {
			v[i] = renamed(v[i])
		}
	}
	return v
}

// sourceText returns the id of a source, which is 16 numbers, in hexadecimal digits.
func sourceText(name string, v any) (string, bool) {
	list, is := v.([]any)
	if name != "Source" || !is || len(list) != 16 {
		return "", false
	}
	var id []byte
	for _, n := range list {
		number, is := n.(json.Number)
		if !is {
			return "", false
		}
		digit, err := number.Int64()
		if err != nil {
			return "", false
		}
		id = append(id, byte(digit))
	}
	return hex.EncodeToString(id), true
}

// SnakeCase writes a name as in HeldCPU or TotalGPU with low lines.
func SnakeCase(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 {
			after := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if runes[i-1] != '_' && (!unicode.IsUpper(runes[i-1]) || after) {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

package config

import (
	"fmt"
	"io/fs"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

// blockReader reads the settings of one block. It remembers the names that were read, so
// that any other setting is reported as unknown.
type blockReader struct {
	*problemList
	body       *hclsyntax.Body
	title      string // such as "in schedd", for messages
	knownNames []string
	blocks     []string
}

// findValue returns a setting by name, and whether it exists and is valid HCL.
func (s *blockReader) findValue(name string) (cty.Value, hcl.Range, bool) {
	s.knownNames = append(s.knownNames, name)
	attr, ok := s.body.Attributes[name]
	if !ok {
		return cty.NilVal, hcl.Range{}, false
	}
	at := attr.Expr.Range()
	v, diags := attr.Expr.Value(nil)
	if diags.HasErrors() {
		s.addDiagnostics(diags)
		return cty.NilVal, at, false
	}
	if v.IsNull() || !v.IsWhollyKnown() {
		s.addProblem(at, "leave the line out for the default", "%s is null", name)
		return cty.NilVal, at, false
	}
	return v, at, true
}

// readSetting reads a setting as text, also from a number or a truth value, and calls
// parse with it.
func (s *blockReader) readSetting(name, example string, parse func(text string) error) {
	v, at, ok := s.findValue(name)
	if !ok {
		return
	}
	text, ok := scalarText(v)
	if !ok {
		s.addProblem(at, fmt.Sprintf("write it as %s = %s", name, example), "%s is of type %s", name,
			v.Type().FriendlyName())
		return
	}
	if err := parse(text); err != nil {
		s.addProblem(at, fmt.Sprintf("write it as %s = %s", name, example), "%s: %v", name, err)
	}
}

func scalarText(v cty.Value) (string, bool) {
	switch v.Type() {
	case cty.String:
		return v.AsString(), true
	case cty.Bool:
		return strconv.FormatBool(v.True()), true
	case cty.Number:
		return numberText(v.AsBigFloat()), true
	}
	return "", false
}

// numberText prints whole numbers of a sensible size exactly, and other numbers with the
// precision of a float64. A file may contain 1e999999999, whose decimal digits would take
// hours to print.
func numberText(f *big.Float) string {
	if f.MantExp(nil) < 256 && f.IsInt() {
		return f.Text('f', 0)
	}
	v, _ := f.Float64()
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func (s *blockReader) readText(name string, to *string) {
	s.readSetting(name, `"…"`, func(text string) error {
		if text == "" {
			return fmt.Errorf("it is empty")
		}
		*to = text
		return nil
	})
}

func (s *blockReader) readBool(name string, to *bool) {
	s.readSetting(name, "true", func(text string) (err error) {
		if *to, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		return nil
	})
}

func (s *blockReader) readCount(name string, to *int) {
	s.readSetting(name, "1000", func(text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return fmt.Errorf("%s is not a whole number from 1 to 2147483647", text)
		}
		*to = int(n)
		return nil
	})
}

func (s *blockReader) readDuration(name, example string, to *time.Duration) {
	s.readSetting(name, example, func(text string) (err error) {
		*to, err = roost.ParseDuration(text)
		return err
	})
}

func (s *blockReader) readSize(name, example string, to *roost.Bytes) {
	s.readSetting(name, example, func(text string) (err error) {
		*to, err = roost.ParseBytes(text)
		return err
	})
}

func (s *blockReader) readCores(name string, to *roost.MilliCPU) {
	s.readSetting(name, "4", func(text string) error {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= 0.001 && n <= 1<<20) {
			return fmt.Errorf("%s is not a number of cores", text)
		}
		*to = roost.MilliCPU(n*1000 + 0.5)
		return nil
	})
}

func (s *blockReader) readFileMode(name string, to *fs.FileMode) {
	s.readSetting(name, `"0666"`, func(text string) error {
		n, err := strconv.ParseUint(text, 8, 32)
		if err != nil || n&^0o777 != 0 || n&0o600 != 0o600 {
			return fmt.Errorf("%q is not a mode in octal that lets its owner read and write", text)
		}
		*to = fs.FileMode(n)
		return nil
	})
}

// readList reads a list of texts; check is called with each and its position.
func (s *blockReader) readList(name, example string, to *[]string, check func(text string, at hcl.Range)) {
	v, at, ok := s.findValue(name)
	if !ok {
		return
	}
	if !v.Type().IsTupleType() && !v.Type().IsListType() {
		s.addProblem(at, fmt.Sprintf("write it as %s = [%s]", name, example), "%s is of type %s and not a list", name,
			v.Type().FriendlyName())
		return
	}
	parts := v.AsValueSlice()
	places, _ := s.body.Attributes[name].Expr.(*hclsyntax.TupleConsExpr)
	for i, part := range parts {
		if places != nil && i < len(places.Exprs) {
			at = places.Exprs[i].Range()
		}
		if part.IsNull() || part.Type() != cty.String || part.AsString() == "" {
			s.addProblem(at, fmt.Sprintf("write it as %s = [%s]", name, example),
				"%s: each of the list is a text that is not empty", name)
			continue
		}
		check(part.AsString(), at)
		*to = append(*to, part.AsString())
	}
}

// readExpressions reads a map from names to ClassAd expressions. Numbers and truth values
// are literals.
func (s *blockReader) readExpressions(name string, to *map[string]string) {
	v, at, ok := s.findValue(name)
	if !ok {
		return
	}
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		s.addProblem(at, name+` = { HasMatlab = true }`, "%s is of type %s and not a map", name,
			v.Type().FriendlyName())
		return
	}
	*to = map[string]string{}
	for key, part := range v.AsValueMap() {
		text, ok := "", false
		if !part.IsNull() {
			text, ok = scalarText(part)
		}
		if !ok || !isAttributeName(key) {
			s.addProblem(at, `write each as a name and an expression, as in HasMatlab = true or Site = "\"east\""`,
				"%s: %q", name, key)
			continue
		}
		(*to)[key] = text
	}
}

// nestedBlocks returns the blocks with a name.
func (s *blockReader) nestedBlocks(name string) []*hclsyntax.Block {
	s.blocks = append(s.blocks, name)
	var found []*hclsyntax.Block
	for _, b := range s.body.Blocks {
		if b.Type == name {
			found = append(found, b)
		}
	}
	return found
}

// reportUnknown reports settings that were not read.
func (s *blockReader) reportUnknown() {
	for name, attr := range s.body.Attributes {
		if slices.Contains(s.knownNames, name) {
			continue
		}
		if slices.Contains(s.blocks, name) {
			s.addProblem(attr.NameRange, fmt.Sprintf("write it as a block: %s { … }", name),
				"%s is a block and takes no \"=\"", name)
			continue
		}
		s.addProblem(attr.NameRange, suggestWord(name, slices.Concat(s.knownNames, s.blocks)), "%s: unknown setting %q",
			s.title, name)
	}
	for _, b := range s.body.Blocks {
		if slices.Contains(s.blocks, b.Type) {
			continue
		}
		if slices.Contains(s.knownNames, b.Type) {
			s.addProblem(b.TypeRange, fmt.Sprintf("write it as %s = …", b.Type),
				"%s is a setting and not a block", b.Type)
			continue
		}
		s.addProblem(b.TypeRange, suggestWord(b.Type, slices.Concat(s.blocks, s.knownNames)), "%s: unknown block %q",
			s.title, b.Type)
	}
}

package submit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/lazyregexp"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// maxResult bounds the text that one function returns, in bytes.
const maxResult = 16 << 20

// boundedFunc wraps a function of the standard library whose result can be far larger
// than its arguments. size estimates the bytes of the result before any work is done.
func (p *fileParser) boundedFunc(f function.Function, size func(args []cty.Value) (int, error)) function.Function {
	check := func(args []cty.Value) error {
		for _, a := range args {
			if !a.IsWhollyKnown() {
				return nil
			}
		}
		n, err := size(args)
		if err == nil && n > maxResult {
			err = fmt.Errorf("the result would have more than %d bytes", maxResult)
		}
		p.meter.spend(max(n, 0) / 16)
		return err
	}
	return function.New(&function.Spec{
		Params: f.Params(), VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := check(args); err != nil {
				return cty.NilType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

func textLen(v cty.Value) int {
	if v.IsNull() || v.Type() != cty.String {
		return 32
	}
	return len(v.AsString())
}

// joinSize returns the size of all separators; the elements exist already.
func joinSize(args []cty.Value) (int, error) {
	n := 0
	for _, list := range args[1:] {
		if !list.IsNull() && list.CanIterateElements() {
			n += list.LengthInt() * (textLen(args[0]) + 1)
		}
	}
	return n, nil
}

func replaceSize(args []cty.Value) (int, error) {
	text, old, with := textLen(args[0]), textLen(args[1]), textLen(args[2])
	if s := args[1].AsString(); len(s) > 1 && strings.HasPrefix(s, "/") && strings.HasSuffix(s, "/") {
		old = 1 // a pattern
	}
	if with > 0 && (text/max(old, 1)+1) > maxResult/with {
		return maxResult + 1, nil
	}
	return text + (text/max(old, 1)+1)*with, nil
}

func indentSize(args []cty.Value) (int, error) {
	spaces, _ := args[0].AsBigFloat().Float64()
	lines := strings.Count(args[1].AsString(), "\n") + 1
	if spaces*float64(lines) > maxResult {
		return maxResult + 1, nil
	}
	return int(spaces)*lines + textLen(args[1]), nil
}

var formatWidth = lazyregexp.New(`[0-9]{4,}|\*`)

// formatSize refuses widths that no output needs.
func formatSize(args []cty.Value) (int, error) {
	if s := args[0].AsString(); strings.Contains(s, "%") {
		for _, w := range formatWidth().FindAllString(s, -1) {
			if w == "*" {
				return 0, fmt.Errorf("a width of * is not known here; write the number into the format")
			}
			if n, err := strconv.Atoi(w); (err != nil || n > 4096) && strings.Contains(s, w) && widthAt(s, w) {
				return 0, fmt.Errorf("a width of %s is too much: at most 4096", w)
			}
		}
	}
	return textLen(args[0]), nil
}

// widthAt reports whether digits of a format belong to a verb and are not text.
func widthAt(format, digits string) bool {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		j := i + 1
		for j < len(format) && strings.IndexByte("+-# 0123456789.[]", format[j]) >= 0 {
			j++
		}
		if strings.Contains(format[i:j], digits) {
			return true
		}
		i = j
	}
	return false
}

// jsonDepth refuses nesting that would overflow the stack of a recursive decoder.
func jsonDepth(args []cty.Value) (int, error) {
	depth := 0
	for _, c := range []byte(args[0].AsString()) {
		switch c {
		case '[', '{':
			if depth++; depth > 10*maxNesting {
				return 0, fmt.Errorf("it nests more than %d deep", 10*maxNesting)
			}
		case ']', '}':
			depth--
		}
	}
	return 0, nil
}

// unknownFile is the result of a function that needs files, where none are accessed.
func (p *fileParser) unknownFile(t cty.Type) (cty.Value, error) {
	if p.options.RefuseFiles {
		return cty.NilVal, errors.New("files are not read here: write what is in them into the job file, or submit " +
			"it with roost submit")
	}
	return cty.UnknownVal(t), nil
}

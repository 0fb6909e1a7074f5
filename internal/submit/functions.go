package submit

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// Bounds on the results of single functions.
const (
	maxRange     = 1_000_000
	maxMatrix    = 1_000_000
	maxFileBytes = 1 << 20
)

// functions returns the functions that expressions may call. None depends on the time or
// on random numbers, so a job file always means the same.
func (p *fileParser) functions() map[string]function.Function {
	return map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "log": stdlib.LogFunc,
		"max": stdlib.MaxFunc,
		"min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc, "signum": stdlib.SignumFunc,
		"chomp": stdlib.ChompFunc, "endswith": endswith, "format": p.boundedFunc(stdlib.FormatFunc, formatSize),
		"formatlist": p.boundedFunc(stdlib.FormatListFunc, formatSize),
		"indent":     p.boundedFunc(stdlib.IndentFunc, indentSize),
		"join":       p.boundedFunc(stdlib.JoinFunc, joinSize), "lower": stdlib.LowerFunc, "regex": stdlib.RegexFunc,
		"regexall": stdlib.RegexAllFunc,
		"replace":  p.boundedFunc(stdlib.ReplaceFunc, replaceSize), "split": stdlib.SplitFunc, "startswith": startswith,
		"strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc,
		"title": stdlib.TitleFunc, "trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc,
		"trimspace":  stdlib.TrimSpaceFunc,
		"trimsuffix": stdlib.TrimSuffixFunc, "upper": stdlib.UpperFunc,
		"chunklist": stdlib.ChunklistFunc, "coalesce": stdlib.CoalesceFunc, "compact": stdlib.CompactFunc,
		"concat":   stdlib.ConcatFunc,
		"contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc,
		"flatten": stdlib.FlattenFunc,
		"keys":    stdlib.KeysFunc, "length": length, "lookup": stdlib.LookupFunc, "merge": stdlib.MergeFunc,
		"range":   rangeFunc,
		"reverse": stdlib.ReverseListFunc, "setproduct": p.setproduct(), "slice": stdlib.SliceFunc,
		"sort":     stdlib.SortFunc,
		"toset":    stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
		"tolist":   stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
		"tonumber": stdlib.MakeToFunc(cty.Number), "tostring": stdlib.MakeToFunc(cty.String),
		"values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc,
		"csvdecode": stdlib.CSVDecodeFunc, "jsondecode": p.boundedFunc(stdlib.JSONDecodeFunc, jsonDepth),
		"jsonencode": stdlib.JSONEncodeFunc,
		"basename":   pathFunc(path.Base), "dirname": pathFunc(path.Dir),
		"matrix": p.matrix(), "files": p.filesFunc(), "file": p.fileFunc(),
	}
}

func functionNames(table map[string]function.Function) []string {
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// textPredicate returns a function of two texts that gives a boolean.
func textPredicate(names [2]string, holds func(a, b string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: names[0], Type: cty.String}, {Name: names[1], Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(holds(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

var (
	startswith = textPredicate([2]string{"text", "prefix"}, strings.HasPrefix)
	endswith   = textPredicate([2]string{"text", "suffix"}, strings.HasSuffix)
)

func pathFunc(f func(string) string) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.StringVal(f(args[0].AsString())), nil
		},
	})
}

// length counts the characters of a text, or the elements of any other value.
var length = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if v := args[0]; v.Type() == cty.String {
			return stdlib.Strlen(v)
		} else if v.CanIterateElements() {
			return cty.NumberIntVal(int64(v.LengthInt())), nil
		}
		return cty.NilVal, function.NewArgErrorf(0, "a text, a list, a set or a map is wanted")
	},
})

// rangeFunc counts up or down: range(limit), range(start, limit) and range(start, limit,
// step).
var rangeFunc = function.New(&function.Spec{
	VarParam: &function.Parameter{Name: "numbers", Type: cty.Number},
	Type:     function.StaticReturnType(cty.List(cty.Number)),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		numbers := [3]float64{0, 0, 1}
		for i, a := range args[:min(len(args), 3)] {
			numbers[i], _ = a.AsBigFloat().Float64()
		}
		switch len(args) {
		case 1:
			numbers[0], numbers[1] = 0, numbers[0]
		case 2, 3:
		default:
			return cty.NilVal, fmt.Errorf("range takes a limit, or a start and a limit, or a start, a limit and a step")
		}
		start, limit, step := numbers[0], numbers[1], numbers[2]
		if len(args) < 3 && limit < start {
			step = -1
		}
		if !(step != 0) || !((limit-start)/step >= 0) {
			return cty.NilVal, fmt.Errorf("the step %v never leads from %v to %v", step, start, limit)
		}
		if (limit-start)/step > maxRange {
			return cty.NilVal, fmt.Errorf("this would be a list of more than %d numbers; for a job of so many tasks "+
				"write count = N, and task.index for the number", maxRange)
		}
		list := make([]cty.Value, 0, int((limit-start)/step)+1)
		for i := 0; ; i++ {
			n := start + float64(i)*step
			if step > 0 && n >= limit || step < 0 && n <= limit {
				break
			}
			list = append(list, cty.NumberFloatVal(n))
		}
		if len(list) == 0 {
			return cty.ListValEmpty(cty.Number), nil
		}
		return cty.ListVal(list), nil
	},
})

// setproduct is the function of the standard library with a bound.
func (p *fileParser) setproduct() function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "sets", Type: cty.DynamicPseudoType},
		Type: func(args []cty.Value) (cty.Type, error) {
			total := 1
			for _, a := range args {
				if a.IsKnown() && !a.IsNull() && a.CanIterateElements() {
					if total *= a.LengthInt(); total > maxMatrix {
						return cty.NilType, fmt.Errorf("this would have more than %d elements", maxMatrix)
					}
				}
			}
			p.meter.spend(4 * total)
			return stdlib.SetProductFunc.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return stdlib.SetProduct(args...) },
	})
}

// matrix returns the list of all combinations of named lists. matrix({a = [1, 2], b =
// ["x", "y"]}) is [{a=1, b="x"}, {a=1, b="y"}, {a=2, b="x"}, {a=2, b="y"}]. Names are in
// alphabetical order; the last one changes fastest.
func (p *fileParser) matrix() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "lists", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() { // files are not accessed
				return cty.DynamicVal, nil
			}
			if ty := args[0].Type(); !ty.IsObjectType() && !ty.IsMapType() {
				return cty.NilVal, function.NewArgErrorf(0,
					"a map of lists is wanted, as in matrix({lr = [0.1, 0.01], seed = range(10)})")
			}
			lists, rows := args[0].AsValueMap(), 1
			for name, list := range lists {
				if list.IsNull() || !list.CanIterateElements() || list.Type().IsMapType() ||
					list.Type().IsObjectType() {
					return cty.NilVal, function.NewArgErrorf(0, "%q has to be a list", name)
				}
				if rows *= list.LengthInt(); rows > maxMatrix {
					return cty.NilVal, function.NewArgErrorf(0, "this would be more than %d combinations", maxMatrix)
				}
			}
			if rows == 0 || len(lists) == 0 {
				return cty.EmptyTupleVal, nil
			}
			p.meter.spend(4 * rows * len(lists))
			return combinations(lists, rows), nil
		},
	})
}

func combinations(lists map[string]cty.Value, rows int) cty.Value {
	names := make([]string, 0, len(lists))
	for name := range lists {
		names = append(names, name)
	}
	slices.Sort(names)
	columns := make([][]cty.Value, len(names))
	for i, name := range names {
		columns[i] = unifyTypes(lists[name].AsValueSlice())
	}
	out := make([]cty.Value, rows)
	for r := range out {
		row, n := make(map[string]cty.Value, len(names)), r
		for i := len(names) - 1; i >= 0; i-- {
			row[names[i]] = columns[i][n%len(columns[i])]
			n /= len(columns[i])
		}
		out[r] = cty.ObjectVal(row)
	}
	return cty.TupleVal(out)
}

// unifyTypes converts values to a common type, if they have one.
func unifyTypes(list []cty.Value) []cty.Value {
	types := make([]cty.Type, len(list))
	for i, v := range list {
		types[i] = v.Type()
	}
	if ty, _ := convert.Unify(types); ty != cty.NilType {
		for i, v := range list {
			if c, err := convert.Convert(v, ty); err == nil {
				list[i] = c
			}
		}
	}
	return list
}

// filesFunc lists the files that match a pattern, sorted, relative to the submit
// directory.
func (p *fileParser) filesFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "pattern", Type: cty.String}},
		Type:   function.StaticReturnType(cty.List(cty.String)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if p.options.Files == nil {
				return p.unknownFile(cty.List(cty.String))
			}
			pattern := args[0].AsString()
			found, err := p.options.Files.Glob(absolutePath(pattern, p.options.Dir, p.options.Home))
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(0, "%q is not a pattern: %v", pattern, err)
			}
			if len(found) == 0 {
				return cty.ListValEmpty(cty.String), nil
			}
			p.meter.spend(len(found))
			list := make([]cty.Value, len(found))
			for i, name := range found {
				if !path.IsAbs(pattern) && !strings.HasPrefix(pattern, "~") {
					name = strings.TrimPrefix(name, strings.TrimSuffix(p.options.Dir, "/")+"/")
				}
				list[i] = cty.StringVal(name)
			}
			return cty.ListVal(list), nil
		},
	})
}

// fileFunc reads a file of at most maxFileBytes of text.
func (p *fileParser) fileFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if p.options.Files == nil {
				return p.unknownFile(cty.String)
			}
			name := args[0].AsString()
			text, err := p.options.Files.Read(absolutePath(name, p.options.Dir, p.options.Home), maxFileBytes)
			if err != nil {
				p.hasUnreadFile = true
				return cty.NilVal, function.NewArgErrorf(0, "%q cannot be read: %v", name, innermostCause(err))
			}
			if firstInvalidByte(text) >= 0 || strings.ContainsRune(string(text), 0) {
				return cty.NilVal, function.NewArgErrorf(0, "%q is not text in UTF-8", name)
			}
			p.meter.spend(len(text) / 16)
			return cty.StringVal(string(text)), nil
		},
	})
}

// innermostCause returns the cause of a file error without the path, which the message
// has already.
func innermostCause(err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err
	}
	return err
}

// absolutePath makes a path absolute and clean. "~/" is the home directory, and other
// relative paths start at dir.
func absolutePath(name, dir, home string) string {
	if name == "~" || strings.HasPrefix(name, "~/") {
		return path.Join(home, name[1:])
	}
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// checkCalls reports the functions in expr that do not exist.
func (p *fileParser) checkCalls(expr hclsyntax.Expression) (ok bool) {
	ok = true
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) (none hclDiags) {
		if call, is := n.(*hclsyntax.FunctionCallExpr); is {
			if _, known := p.root.Functions[call.Name]; !known {
				ok = false
				p.report(newDiagnostic(call.NameRange.Ptr(), fmt.Sprintf("there is no function %q", call.Name),
					functionHint(call.Name, functionNames(p.root.Functions))))
			}
		}
		return nil
	})
	return ok
}

func functionHint(name string, names []string) string {
	switch name {
	case "timestamp", "uuid", "random", "rand":
		return "A job file means the same whenever it is read, so nothing in it knows the time or makes a random " +
			"number. Hand such a value in: variable \"x\" {}, and --var x=…."
	case "env", "getenv":
		return "The environment of the submitter is not read by expressions. Hand a value in with --var, or take " +
			"variables along to the task: getenv = [\"NAME\"]."
	}
	return "Functions are those of Terraform that need neither time nor network, with matrix, files and file; " +
		"roost-job(5) lists them." + didYouMean(name, names)
}

package classad

// SetBool sets an attribute to a Boolean.
func (a *Ad) SetBool(name string, b bool) { a.Insert(name, Expr{&literalNode{BoolValue(b)}}) }

// SetInt sets an attribute to an Integer.
func (a *Ad) SetInt(name string, n int64) { a.Insert(name, Expr{&literalNode{IntValue(n)}}) }

// SetReal sets an attribute to a Real.
func (a *Ad) SetReal(name string, f float64) { a.Insert(name, Expr{&literalNode{RealValue(f)}}) }

// SetString sets an attribute to a String.
func (a *Ad) SetString(name, s string) { a.Insert(name, Expr{&literalNode{StringValue(s)}}) }

// SetStrings sets an attribute to a List of Strings.
func (a *Ad) SetStrings(name string, list []string) {
	elems := make([]Expr, len(list))
	for i, s := range list {
		elems[i] = Expr{&literalNode{StringValue(s)}}
	}
	a.Insert(name, Expr{&listNode{elems: elems}})
}

// SetValue sets an attribute to a value.
func (a *Ad) SetValue(name string, v Value) { a.Insert(name, v.Expr()) }

// SetAd sets an attribute to a nested ad, which is copied.
func (a *Ad) SetAd(name string, nested *Ad) { a.Insert(name, Expr{&adNode{ad: nested.Copy()}}) }

// SetExpr sets an attribute to the expression that src holds. The error is a
// *[SyntaxError].
func (a *Ad) SetExpr(name, src string) error {
	e, err := ParseExpr(src)
	if err != nil {
		return err
	}
	a.Insert(name, e)
	return nil
}

package classad

// Int returns the value of an attribute that is a number or a Boolean. A Real loses its
// fraction, a Boolean is 0 or 1. The typed getters evaluate with an empty [EvalEnv] and
// without another ad.
func (a *Ad) Int(name string) (int64, bool) {
	switch v := a.Eval(name, nil); v.kind {
	case Integer, Boolean:
		return v.int(), true
	case Real:
		return realToInt(v.real())
	}
	return 0, false
}

// Real returns the value of an attribute that is a number or a Boolean.
func (a *Ad) Real(name string) (float64, bool) { return a.Eval(name, nil).Number() }

// Bool returns the value of an attribute that is a Boolean or a number (true if not
// zero).
func (a *Ad) Bool(name string) (bool, bool) { return a.Eval(name, nil).Truth() }

// Str returns the value of an attribute that is a String.
func (a *Ad) Str(name string) (string, bool) { return a.Eval(name, nil).Str() }

// Strings returns the value of an attribute that is a List of Strings.
func (a *Ad) Strings(name string) ([]string, bool) {
	elems, ok := a.Eval(name, nil).Elements(nil)
	if !ok {
		return nil, false
	}
	list := make([]string, len(elems))
	for i, v := range elems {
		if list[i], ok = v.Str(); !ok {
			return nil, false
		}
	}
	return list, true
}

// Sub returns the value of an attribute that is an ad. The result is shared and must not
// be changed.
func (a *Ad) Sub(name string) (*Ad, bool) { return a.Eval(name, nil).Ad() }

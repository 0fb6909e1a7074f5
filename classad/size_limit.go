package classad

// takeSize charges the size of a value in a list to the bound on text, and reports
// whether that sufficed. Lists share their elements, so a list that is cheap to make can
// be huge to print.
func (ev *evaluator) takeSize(v Value) bool {
	if !ev.takeText(64 + len(v.str)) {
		return false
	}
	if v.comp == nil {
		return true
	}
	for _, e := range v.comp.elems {
		if !ev.takeNodeSize(e.n) {
			return false
		}
	}
	if v.kind == AdValue {
		for i := range v.comp.ad.labels {
			if !ev.takeText(len(v.comp.ad.labels[i].name)) || !ev.takeNodeSize(v.comp.ad.exprs[i].n) {
				return false
			}
		}
	}
	return true
}

func (ev *evaluator) takeNodeSize(n exprNode) bool {
	switch n := n.(type) {
	case nil:
		return true
	case *boundValue:
		return ev.takeSize(n.v)
	case *literalNode:
		return ev.takeText(16 + len(n.v.str))
	}
	if !ev.takeText(16) {
		return false
	}
	for child := range children(n) {
		if !ev.takeNodeSize(child) {
			return false
		}
	}
	return true
}

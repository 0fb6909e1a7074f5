package adstore

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// AdQuery selects ads. CompileQuery makes it.
type AdQuery struct {
	constraint *classad.Expr
	projection []string
	limit      int
}

// Bounds on a query.
const (
	maxConstraint = 64 << 10
	maxProjection = 1024
	querySteps    = 10_000 // steps of evaluating the constraint for one ad
)

// CompileQuery compiles a query from its parts. The constraint is empty for all ads, the
// projection empty for all attributes, and the limit 0 for none. Errors wrap
// roost.Invalid.
func CompileQuery(constraint string, projection []string, limit int) (AdQuery, error) {
	q := AdQuery{projection: projection, limit: limit}
	if len(projection) > maxProjection {
		return AdQuery{}, fmt.Errorf("projection: %w: %d attributes, and %d is the most", roost.Invalid,
			len(projection), maxProjection)
	}
	if strings.TrimSpace(constraint) == "" {
		return q, nil
	}
	if len(constraint) > maxConstraint {
		return AdQuery{}, fmt.Errorf("constraint: %w: %d bytes, and %d is the most", roost.Invalid, len(constraint),
			maxConstraint)
	}
	e, err := classad.ParseExpr(constraint)
	if err != nil {
		return AdQuery{}, fmt.Errorf("constraint: %w: %w", roost.Invalid, err)
	}
	q.constraint = &e
	return q, nil
}

// Select calls yield with the texts of the entries that match the query, in their order,
// until yield returns false. An ad for which the constraint is not true (false,
// undefined, an error) is left out. env.Now is the result of time() in the constraint.
func (q AdQuery) Select(entries []*StoredAd, env *classad.EvalEnv, yield func(text string) bool) {
	bounded := classad.EvalEnv{Steps: querySteps}
	if env != nil {
		bounded.Now = env.Now
	}
	left := q.limit
	for _, e := range entries {
		if q.constraint != nil && !classad.Eval(*q.constraint, e.Ad, nil, &bounded).IsTrue() {
			continue
		}
		if !yield(q.projectedText(e)) {
			return
		}
		if left--; left == 0 {
			return
		}
	}
}

// projectedText returns the text of an entry with only the requested attributes, its type
// and its name.
func (q AdQuery) projectedText(e *StoredAd) string {
	if len(q.projection) == 0 {
		return e.Text
	}
	wanted := map[string]bool{strings.ToLower(roost.AttrMyType): true, strings.ToLower(roost.AttrName): true}
	for _, name := range q.projection {
		wanted[strings.ToLower(name)] = true
	}
	ad := classad.New()
	for name, expr := range e.Ad.All() {
		if wanted[strings.ToLower(name)] {
			ad.Insert(name, expr)
		}
	}
	return ad.String()
}

package adstore

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// AdQuery asks for ads. Compile makes it ready.
type AdQuery struct {
	constraint *classad.Expr
	projection []string
	limit      int
}

// Bounds on what a query may ask for.
const (
	maxConstraint = 64 << 10
	maxProjection = 1024
	querySteps    = 10_000 // of evaluating the constraint with one ad
)

// CompileQuery reads a constraint, empty for all ads; a projection, empty for all
// attributes; and a limit, 0 for none. Errors wrap roost.Invalid.
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

// Select hands the texts of those entries that meet the query to yield, in their order,
// until yield returns false. An ad for which the constraint is not true (false,
// undefined, an error) is left out. Now is what time() says in the constraint.
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

// projectedText is the text of an entry, with the attributes asked for and its type and
// name.
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

package render

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/numbers"
	"github.com/ndbridge/ndbridge/internal/pieces"
)

const (
	fewRows    = 8
	fewColumns = 8
)

// few reports whether an array is so small that its numbers say more than a picture.
func few(l core.Layout) bool {
	rank := l.Rank()
	return rank <= 2 && (rank < 1 || l.Dim(rank-1) <= fewColumns) && (rank < 2 || l.Dim(0) <= fewRows)
}

// How many digits numbers that are not whole have.
const (
	ForPeople = 6  // as many as people want to read
	Exact     = -1 // as few as say which number it is
)

// Elements writes each element of v as text, in row-major order: whole numbers in full, others in that many digits.
// Elements without a known value are refused with core.ErrDType.
func Elements(ctx context.Context, v *core.View, digits int) ([]string, error) {
	d := numbers.TypeOf(v.Layout())
	if !d.Known() {
		return nil, undrawable(v)
	}
	raw := make([]byte, v.NBytes())
	if _, err := core.CopyBytes(ctx, raw, v); err != nil {
		return nil, err
	}
	d.ToNative(raw)
	texts := make([]string, v.Len())
	for i := range texts {
		texts[i] = number(raw, d.DType, i, digits)
	}
	return texts, nil
}

// numberLines writes the numbers of a small array in columns.
func numberLines(ctx context.Context, v *core.View) ([]string, error) {
	texts, err := Elements(ctx, v, ForPeople)
	if err != nil {
		return nil, err
	}
	width := 0
	for _, text := range texts {
		width = max(width, utf8.RuneCountInString(text))
	}
	columns := 1
	if v.Rank() > 0 {
		columns = v.Dim(v.Rank() - 1)
	}
	var lines []string
	for ; len(texts) > 0; texts = texts[columns:] {
		row := make([]string, columns)
		for i, text := range texts[:columns] {
			row[i] = fmt.Sprintf("%*s", width, text)
		}
		lines = append(lines, strings.Join(row, "  "))
	}
	return lines, nil
}

// number is the text of the element i of those in raw.
func number(raw []byte, d core.DType, i, digits int) string {
	size := d.Size()
	switch {
	case d == core.Bool:
		return strconv.FormatBool(raw[i] != 0)
	case d == core.Int64:
		return strconv.FormatInt(int64(binary.NativeEndian.Uint64(raw[size*i:])), 10)
	case d == core.Uint64:
		return strconv.FormatUint(binary.NativeEndian.Uint64(raw[size*i:]), 10)
	case numbers.Complex(d):
		return complexText(raw[size*i:][:size], digits)
	case d.Packed():
		return decimal(numbers.Append(nil, raw, numbers.Type{DType: d}, i+1)[i], d, digits)
	}
	return decimal(numbers.Append(nil, raw[size*i:][:size], numbers.Type{DType: d}, 1)[0], d, digits)
}

// complexText writes a complex number of two halves of its bytes as Python does, without brackets.
func complexText(b []byte, digits int) string {
	part, bits := numbers.Double, 32
	switch len(b) {
	case 4:
		part = numbers.Half
	case 8:
		part = numbers.Single
	default:
		bits = 64
	}
	text := func(x float64) string { return strconv.FormatFloat(x, 'g', digits, bits) }
	im := text(part(b[len(b)/2:]))
	if !strings.HasPrefix(im, "-") && !strings.HasPrefix(im, "+") {
		im = "+" + im
	}
	return text(part(b)) + im + "j"
}

// Number writes a number computed from elements of type d (an element, a mean, a magnitude) in as many
// digits as people want to read: whole ones in full as far as they are exact, others in six.
func Number(x float64, d core.DType) string { return decimal(x, d, ForPeople) }

func decimal(x float64, d core.DType, digits int) string {
	if numbers.Integral(d) && x == float64(int64(x)) && x > -1<<53 && x < 1<<53 {
		return strconv.FormatInt(int64(x), 10)
	}
	bits := 64
	if digits == Exact && d.Bits() <= 32 && !numbers.Integral(d) { // 0.1 of float32 is 0.1, and not 0.10000000149011612
		bits = 32
	}
	return strconv.FormatFloat(x, 'g', digits, bits)
}

// hexLines shows the bytes of the first elements.
func hexLines(ctx context.Context, v *core.View, columns int) ([]string, error) {
	const elements = 4
	size := v.DType().Bits() * v.DType().Lanes() / 8
	var lines []string
	for raw, err := range pieces.Of(ctx, v, elements*size) {
		if err != nil {
			return nil, err
		}
		for i := range len(raw) / size {
			lines = append(lines, hexLine(raw[i*size:][:size], columns))
		}
		break
	}
	return lines, nil
}

// hexLine shows as many bytes as a line has room for.
func hexLine(raw []byte, columns int) string {
	const dots = " ..."
	if room := max((columns-len(dots)+1)/3, 1); len(raw) > room {
		return fmt.Sprintf("% x", raw[:room]) + dots
	}
	return fmt.Sprintf("% x", raw)
}

package values

// Split divides what a function has returned for a batch of n rows among the rows: it gives a form for each. What
// belongs to a row:
//
//   - of an array, whose first axis must have n elements: that element
//   - of a list, which must have n items: that item, whatever it is
//   - of a tuple, a dict or a record, which Python functions return several things in: the same with the row's
//     share of each value
//   - of None: None
//
// Nothing else has rows. The function array gives the number that an array has in a row's form: whole says that the row
// has the array as it is, and otherwise it has the element of the array's first axis. Its errors are returned with the
// place before them. What does not divide is a [*core.Error] with [core.ErrUnsupported].
func Split(b []byte, n int, array func(number, row int, whole bool) (int, error)) ([][]byte, error) {
	s := splitter{Reader: Reader{b: b}, rows: make([]Writer, n), array: array}
	err := s.value()
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return nil, Report("decode", err)
	}
	forms := make([][]byte, n)
	for i := range forms {
		forms[i] = s.rows[i].Form()
	}
	return forms, nil
}

type splitter struct {
	Reader
	rows   []Writer
	array  func(number, row int, whole bool) (int, error)
	copied int // bytes that all rows have got
}

// value divides the next item.
func (s *splitter) value() error {
	begin := s.At()
	t, err := s.Next()
	if err != nil {
		return err
	}
	switch t.Kind {
	case KindNull:
		return s.all(begin)
	case KindArray:
		for i := range s.rows {
			number, err := s.array(t.N, i, false)
			if err != nil {
				return At("", err)
			}
			s.rows[i].Array(number)
		}
		return nil
	case KindList:
		return s.list(t.N)
	case KindTuple, KindDict, KindRecord:
		return s.fields(&t, begin)
	default:
		return Cannot("a value of the type %s has no rows; expected an array or a list of %d", t.Kind, len(s.rows))
	}
}

// all gives each row what was read since begin.
func (s *splitter) all(begin int) error {
	part := s.b[begin:s.At()]
	if s.copied += len(part) * len(s.rows); s.copied > MaxSize {
		return TooLarge()
	}
	for i := range s.rows {
		s.rows[i].b = append(s.rows[i].b, part...)
	}
	return nil
}

// list gives each row an item.
func (s *splitter) list(items int) error {
	if items != len(s.rows) {
		return Cannot("a list of %d items for a batch of %d rows", items, len(s.rows))
	}
	for i := range s.rows {
		if err := s.item(i); err != nil {
			return At(Index(i), err)
		}
	}
	return nil
}

// item gives a row the next item.
func (s *splitter) item(row int) error {
	for left := 1; left > 0; left-- {
		begin := s.At()
		t, err := s.Next()
		if err != nil {
			return err
		}
		left += t.Items()
		if t.Kind != KindArray {
			s.rows[row].b = append(s.rows[row].b, s.b[begin:s.At()]...)
			continue
		}
		number, err := s.array(t.N, row, true)
		if err != nil {
			return err
		}
		s.rows[row].Array(number)
	}
	return nil
}

// fields divides the values in a tuple, a dict or a record, whose head begins at begin.
func (s *splitter) fields(t *Token, begin int) error {
	if err := s.all(begin); err != nil {
		return err
	}
	for i := range t.N {
		at := Index(i)
		if t.Kind != KindTuple {
			begin = s.At()
			key, err := s.Next()
			if err != nil {
				return err
			}
			for n := key.Items(); n > 0; n-- { // a tuple
				if err := s.Skip(); err != nil {
					return err
				}
			}
			if err := s.all(begin); err != nil {
				return err
			}
			switch {
			case t.Kind == KindRecord:
				at = "." + string(key.Bytes)
			case key.Kind == KindText:
				at = Key(string(key.Bytes))
			default:
				at = "[a " + key.Kind.String() + "]"
			}
		}
		if err := s.value(); err != nil {
			return At(at, err)
		}
	}
	return nil
}

"""Counting in how many units codes agree, the inner loops of search and evaluation: one bit or one byte per item.

Two layouts. *Slices* hold a bitmap of the n items for each unit; a query adds the bitmaps of its units as a column of
binary digits, 64 items to a word, so the sum of all items is a few bitmaps too: *planes*, plane p holding digit p. They
serve codes whose units are often on. *Lists* hold the items of each unit, ascending; a query counts along the lists of
its units and looks at no other item. They serve sparse codes. A score is the number of units that agree, a high one
near; scores are small integers, so the nearest items are found by counting, never by sorting.
"""

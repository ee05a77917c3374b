"""Pictures of finished runs: what is in them (panels), and how it is drawn (sheet: SVG and PNG; page: HTML).

Rule: a picture is put together once, without any library that draws; both ways of drawing show the same.
"""

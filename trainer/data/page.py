def html(r):
    return ""

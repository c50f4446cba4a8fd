"""One script a promise of the product: exits non-zero when its claim is false. Run: python -m acceptance.NAME"""
